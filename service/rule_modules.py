"""What every process for rules knows from its start: imported once, and shared by all of them.

Loading what reads times costs 0.6 s and some 40 MB, which a process that takes the place of another need not pay again.
"""

from __future__ import annotations

import gc

from service.curator import extract, judge
from service.jobs import enrich
from service.language import temporal
from service.retrieval import query_parsing, recall

__all__ = ["enrich", "extract", "judge", "query_parsing", "recall"]

temporal.warm()
gc.collect()
gc.freeze()  # a collection in a process would write to every object, and so copy what it shares
