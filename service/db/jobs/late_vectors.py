"""How do goals, strategies and entities get the vector that could not be made when they were written?

Each has a table with its words and, beside it, one with a vector per generation: the same two questions for all three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, exists, select, true
from sqlalchemy.dialects.postgresql import insert as upsert

from service.db.engine import Session
from service.db.tables import Table
from service.domain.text import CleanText
from service.providers.protocols import Vector


@dataclass(frozen=True, slots=True)
class LateVectors:
    """`owner`: the column of `vectors` that names a row of `table`. `words`: what is embedded of such a row. `wanted`:
    which rows have a vector at all."""

    table: type[Table]
    vectors: type[Table]
    owner: str
    words: Callable[[Row[Any]], CleanText]
    wanted: ColumnElement[bool] = field(default_factory=true)

    async def unembedded(
        self, session: Session, workspace_id: UUID, *, generation: int, limit: int
    ) -> dict[UUID, CleanText]:
        """The words of rows that have no vector of this generation."""
        own, kept = self.table.__table__.c, self.vectors.__table__.c
        beside = exists().where(
            kept.workspace_id == own.workspace_id, kept[self.owner] == own.id, kept.generation == generation
        )
        query = select(*own).where(own.workspace_id == workspace_id, self.wanted, ~beside)
        return {row.id: self.words(row) for row in await session.execute(query.order_by(own.id).limit(limit))}

    async def store(
        self, session: Session, workspace_id: UUID, made: Mapping[UUID, tuple[CleanText, Vector]], *, generation: int
    ) -> int:
        """How many rows got a vector: not those whose words are others by now. They cannot go meanwhile."""
        own = self.table.__table__.c
        here = select(*own).where(own.workspace_id == workspace_id, own.id.in_(made)).order_by(own.id)
        there = await session.execute(here.with_for_update(key_share=True, read=True))
        same = [row.id for row in there if self.words(row) == made[row.id][0]]
        rows = [
            {"workspace_id": workspace_id, self.owner: each, "generation": generation, "embedding": made[each][1]}
            for each in same
        ]
        if rows:
            await session.execute(upsert(self.vectors).on_conflict_do_nothing(), rows)
        return len(rows)
