"""What could be cleaned up in a workspace, why, and what it gains; a person decides whether it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

Section = Literal[
    "duplicates", "contradictions", "stale", "low_value", "orphan_entities", "missing_vectors", "dead_jobs"
]
"""A kind of finding; each has one remedy."""

Remedy = Literal["join", "retire", "archive", "remove_entity", "queue_embedding", "retry_job"]

REMEDIES: Final[dict[Section, Remedy]] = {
    "duplicates": "join",
    "contradictions": "retire",
    "stale": "archive",
    "low_value": "archive",
    "orphan_entities": "remove_entity",
    "missing_vectors": "queue_embedding",
    "dead_jobs": "retry_job",
}

UNDOABLE: Final[frozenset[Remedy]] = frozenset({"join", "retire", "archive"})
"""Not undoable: a removed entity is created again when a text names it; effects of a job stay."""

PAIRS: Final[frozenset[Section]] = frozenset({"duplicates", "contradictions"})
"""Findings about two memories, of which one is kept."""

GainUnit = Literal["memories", "bytes", "vectors", "jobs"]
"""`memories`: searches look at so many fewer; `bytes`: freed on disk; `vectors`: so many texts more are found by their
meaning; `jobs`: so many get another attempt."""


@dataclass(frozen=True, slots=True)
class CleanupChange:
    """A finding as a person confirms it: what is to be done to `id`, and (PAIRS) what is kept in its place, both as
    they were when they were looked at. `version`: of a memory or an entity; of a job its attempts."""

    section: Section
    id: UUID
    version: int
    kept_id: UUID | None = None
    kept_version: int | None = None

    @property
    def remedy(self) -> Remedy:
        return REMEDIES[self.section]

    @property
    def is_undoable(self) -> bool:
        return self.remedy in UNDOABLE


@dataclass(frozen=True, slots=True)
class CleanupFinding:
    """`about`, `kept`: the first characters of the memory, the name of the entity or of the job. `review_id`: a review
    decides it. `is_applicable`: it can be confirmed as `change`."""

    change: CleanupChange
    reason: str
    gain: int
    gain_unit: GainUnit
    about: str
    kept: str | None = None
    review_id: UUID | None = None
    is_applicable: bool = True


@dataclass(frozen=True, slots=True)
class WalkPlace:
    """Where a section continues: after the last pair of ids examined; `second` is nil for findings of one id."""

    first: UUID
    second: UUID


START: Final = WalkPlace(UUID(int=0), UUID(int=0))


@dataclass(frozen=True, slots=True)
class SectionReport:
    """`total`: how many findings there are from this page on. Not exact, it counts those of the part that was looked
    at: there may be more behind it, and of duplicates, whose texts were not all compared, fewer."""

    section: Section
    findings: tuple[CleanupFinding, ...]
    total: int
    is_exact: bool
    next: WalkPlace | None


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table of all workspaces, its partitions together. `dead_rows` are left over by changes until VACUUM passes.
    Bytes on disk; `table_bytes` with what is stored out of line."""

    name: str
    rows: int
    dead_rows: int
    table_bytes: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class IndexSize:
    """`scans`: how often it was used since the statistics began."""

    name: str
    table: str
    bytes: int
    scans: int


@dataclass(frozen=True, slots=True)
class StorageReport:
    tables: tuple[TableSize, ...]
    indexes: tuple[IndexSize, ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """What was confirmed. `decision_id`: one decision of the ruling, which undoes all of it; None where nothing of it
    can be undone, or in a dry run."""

    changes: tuple[CleanupChange, ...]
    decision_id: UUID | None = None
