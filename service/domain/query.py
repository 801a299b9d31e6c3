"""What is asked of memory?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from service.domain.memory import Hit
from service.domain.scope import Scope
from service.domain.text import CleanText

Validity = Literal["exclude", "demote", "ignore"]
VectorPath = Literal["exact", "hnsw", "fallback", "none"]


@dataclass(frozen=True, slots=True)
class Window:
    """Half-open interval of event times; either end may be open."""

    start: datetime | None = None
    end: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.start is None and self.end is None


@dataclass(frozen=True, slots=True)
class Query:
    """A redacted question in a scope.

    `tags`: normalised, those that a hit is preferred to have. `reference`: the moment from which "last week" counts,
    None for now. `validity`: what happens to memories outside [t_valid, t_invalid) (C18).
    """

    scope: Scope
    text: CleanText
    limit: int
    window: Window = field(default_factory=Window)
    validity: Validity = "exclude"
    include_archived: bool = False
    explain: bool = False
    tags: tuple[str, ...] = ()
    reference: datetime | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """How many candidates each arm gave, out of how many texts (counted up to one above the exact limit)."""

    candidates: Mapping[str, int]
    texts: int


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first; `vector_path` says how vectors were searched, "none" when there was no vector to ask with."""

    hits: tuple[Hit, ...]
    vector_path: VectorPath
    warnings: tuple[str, ...] = ()
    explained: Explained | None = None
