"""What every process for rules knows from its start: imported once, and shared by all of them.

The database library, some 45 MB, is not among it: what reads texts in these processes reads nothing else.
"""

from __future__ import annotations

import gc

from service.curator import extract, extraction_reply, grounding, judge
from service.pipeline import annotate, dedup, pii, size
from service.retrieval import query_parsing, recall_bundle, techniques

__all__ = [
    "annotate",
    "dedup",
    "extract",
    "extraction_reply",
    "grounding",
    "judge",
    "pii",
    "query_parsing",
    "recall_bundle",
    "size",
    "techniques",
]

gc.collect()
gc.freeze()  # a collection in a process would write to every object, and so copy what it shares
