"""Findings of what could be cleaned up in a workspace, with reason and gain; a person decides about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

Section = Literal["duplicates", "contradictions", "stale", "low_value", "orphan_entities", "missing_vectors"]
"""A kind of finding; each has one remedy."""

Remedy = Literal["join", "retire", "archive", "remove_entity", "queue_embedding"]

REMEDIES: Final[dict[Section, Remedy]] = {
    "duplicates": "join",
    "contradictions": "retire",
    "stale": "archive",
    "low_value": "archive",
    "orphan_entities": "remove_entity",
    "missing_vectors": "queue_embedding",
}

UNDOABLE: Final[frozenset[Remedy]] = frozenset({"join", "retire", "archive"})
"""Not undoable: a removed entity is created again when a text names it; a vector stays."""

PAIRS: Final[frozenset[Section]] = frozenset({"duplicates", "contradictions"})
"""Findings about two memories; one of them is kept."""

GainUnit = Literal["memories", "bytes", "vectors"]
"""`memories`: fewer for searches to look at; `bytes`: freed on disk; `vectors`: more texts found by their meaning."""


@dataclass(frozen=True, slots=True)
class CleanupChange:
    """A finding as a person confirms it: the change of `id` and, for PAIRS, the memory that is kept in its place, both
    as reported. `version`: of the memory or entity."""

    section: Section
    id: UUID
    version: int
    kept_id: UUID | None = None
    kept_version: int | None = None

    @property
    def ids(self) -> tuple[UUID, ...]:
        """The id that is changed, and the one that is kept."""
        return (self.id,) if self.kept_id is None else (self.id, self.kept_id)

    @property
    def remedy(self) -> Remedy:
        return REMEDIES[self.section]

    @property
    def is_undoable(self) -> bool:
        return self.remedy in UNDOABLE


@dataclass(frozen=True, slots=True)
class CleanupFinding:
    """`about`, `kept`: the first characters of the memory, or the name of the entity. `review_id`: the review that
    decides it, instead of a confirmation of `change`."""

    change: CleanupChange
    reason: str
    gain: int
    gain_unit: GainUnit
    about: str
    kept: str | None = None
    review_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class WalkCursor:
    """Where a section continues: after the last pair of ids examined; `second` is nil for findings of one id."""

    first: UUID
    second: UUID


START: Final = WalkCursor(UUID(int=0), UUID(int=0))


@dataclass(frozen=True, slots=True)
class SectionReport:
    """One section of the report. `total`: the number of findings from this page on. If not exact, it counts only the
    part that was examined: there may be more after it, or, of duplicates whose texts were not all compared, fewer."""

    section: Section
    findings: tuple[CleanupFinding, ...]
    total: int
    is_exact: bool
    next: WalkCursor | None
