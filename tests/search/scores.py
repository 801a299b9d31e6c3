"""A score worked out anew from what is shown of it."""

from __future__ import annotations

import math
from typing import Any

from service.search.fusion import Ranked


def recomputed(hit: Ranked) -> float:
    """The score that the terms and factors of a hit make."""
    return math.fsum(term.value * term.weight for term in hit.terms.values()) * math.prod(hit.factors.values())


def explained_score(explained: dict[str, Any]) -> float:
    """The score that terms and factors make, as an answer of the API shows them."""
    terms, factors = explained["terms"].values(), explained["factors"].values()
    return float(math.fsum(term["value"] * term["weight"] for term in terms) * math.prod(factors))
