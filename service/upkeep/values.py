"""Findings of what could be cleaned up in a workspace, with reason and gain; a person decides about them."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple
from uuid import UUID

from pydantic import Field

from service.http.schemas import Id, NextCursor, ResponseModel

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

VERSION = "Version of the memory or entity when it was examined"


class OptimizationChangeItem(ResponseModel):
    """A change to send to `apply`, unmodified."""

    section: Section = Field(description="Kind of finding, which determines the remedy", examples=["stale"])
    id: Id = Field(description="UUID of the memory or entity to change")
    version: int = Field(description=VERSION, examples=[1])
    kept_id: Id | None = Field(description="UUID of the memory to keep; null: no second memory")
    kept_version: int | None = Field(description="Its version; null: no second memory")

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


class OptimizationFinding(ResponseModel):
    """One thing that could be cleaned up."""

    change: OptimizationChangeItem | None = Field(
        description="Send it to `apply`; null: `apply` cannot do it, see `reason`"
    )
    ids: list[Id] = Field(description="UUIDs of the memory or entity it is about, and of the memory to keep")
    remedy: Remedy = Field(description="What `apply` does")
    is_undoable: bool = Field(description="Whether it can be undone")
    reason: str = Field(description="Why it was reported", examples=["It has not been used since 2026-01-02."])
    gain: int = Field(description="The gain, in `gain_unit`", examples=[1])
    gain_unit: GainUnit = Field(
        description="memories: fewer to search; bytes: freed on disk; vectors: more memories found by meaning"
    )
    about: str = Field(description="The first 240 characters of the memory, or the name of the entity")
    kept: str | None = Field(description="The first 240 characters of the memory to keep; null: none")
    review_id: Id | None = Field(description="UUID of the review that decides it; null: none")


class OptimizationSection(ResponseModel):
    """The findings of one kind, in the order of their ids."""

    section: Section = Field(description="Kind of the findings")
    findings: list[OptimizationFinding] = Field(description="At most `limit`")
    total: int = Field(description="Number of findings from this page on", examples=[3])
    is_exact: bool = Field(
        description="Whether `total` is exact. If not, only a part was examined: there may be more, or, for "
        "duplicates, whose texts were not all compared, fewer"
    )
    next_cursor: NextCursor = None


class ApplyOptimizationResponse(ResponseModel):
    """What was done, or would be done in a dry run."""

    dry_run: bool = Field(description="Whether this was a dry run, which changes nothing")
    applied: int = Field(description="Number of changes applied; 0 in a dry run")
    decision_id: Id | None = Field(
        description="UUID of a decision, for undoing all of it with POST /v1/decisions/{id}/undo; null: nothing to undo"
    )


class WalkCursor(NamedTuple):
    """Where a section continues: after the last pair of ids examined; `second` is nil for findings of one id."""

    first: UUID
    second: UUID


START: Final = WalkCursor(UUID(int=0), UUID(int=0))
