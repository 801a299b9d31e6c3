"""Vectors of goals, strategies and entities that could not be made when these were written.

Each of the three has a table with its text and a table with a vector per generation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, TableClause, exists, select, true
from sqlalchemy.dialects import postgresql

from service.domain.text import CleanText
from service.postgres.engine import Session
from service.providers.protocols import Vector


@dataclass(frozen=True, slots=True)
class DeferredVectors:
    """A table whose vectors jobs make. `owner`: the column of `vectors` that refers to a row of `table`. `text_of`: the
    text to embed for a row. `wanted`: which rows have a vector at all."""

    table: TableClause
    vectors: TableClause
    owner: str
    text_of: Callable[[Row[Any]], CleanText]
    wanted: ColumnElement[bool] = field(default_factory=true)

    async def unembedded(
        self, session: Session, workspace_id: UUID, *, generation: int, limit: int
    ) -> dict[UUID, CleanText]:
        """The texts of rows that have no vector of this generation."""
        row, vector = self.table.c, self.vectors.c
        embedded = exists().where(
            vector.workspace_id == row.workspace_id, vector[self.owner] == row.id, vector.generation == generation
        )
        query = select(*row).where(row.workspace_id == workspace_id, self.wanted, ~embedded)
        result = await session.execute(query.order_by(row.id).limit(limit))
        return {each.id: self.text_of(each) for each in result}

    async def store(
        self, session: Session, workspace_id: UUID, made: Mapping[UUID, tuple[CleanText, Vector]], *, generation: int
    ) -> int:
        """Stores vectors, except for rows whose text has changed; returns how many. Locks the rows against changes."""
        row = self.table.c
        query = select(*row).where(row.workspace_id == workspace_id, row.id.in_(made)).order_by(row.id)
        locked = await session.execute(query.with_for_update(read=True))
        same = [each.id for each in locked if self.text_of(each) == made[each.id][0]]
        rows = [
            {"workspace_id": workspace_id, self.owner: each, "generation": generation, "embedding": made[each][1]}
            for each in same
        ]
        if rows:
            await session.execute(postgresql.insert(self.vectors).on_conflict_do_nothing(), rows)
        return len(rows)
