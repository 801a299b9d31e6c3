"""A score worked out anew from what is shown of it."""

from __future__ import annotations

import math

from service.search.fusion import Ranked


def recomputed(hit: Ranked) -> float:
    """The score that the terms and factors of a hit make."""
    return math.fsum(term.value * term.weight for term in hit.terms.values()) * math.prod(hit.factors.values())
