"""Vectors of turns, goals, strategies and entities that could not be made when these were written.

Each of the four has a table with its text and a table with a vector per generation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import ColumnElement, Row, TableClause, delete, select, true
from sqlalchemy.dialects import postgresql

from service.domain.job import LONG_MAX_ATTEMPTS, NewJob
from service.domain.text import CleanText
from service.postgres.engine import Session
from service.providers.protocols import Vector
from service.queue.statements import queue

WORDS_OF = "words_of"
"""The key, in the payload of an embed job, for the kind of texts."""


@dataclass(frozen=True, slots=True)
class DeferredVectors:
    """A table whose vectors jobs make, which name it by `kind`. `owner`: the column of `vectors` that refers to a row
    of `table`. `text_of`: the text to embed for a row. `wanted`: which rows have a vector at all. `copied`: columns
    that both tables have."""

    kind: str
    table: TableClause
    vectors: TableClause
    owner: str
    text_of: Callable[[Row[Any]], CleanText]
    wanted: ColumnElement[bool] = field(default_factory=true)
    copied: Sequence[str] = ("workspace_id",)

    @property
    def columns(self) -> list[ColumnElement[Any]]:
        """All but the lexical vector, which is large."""
        return [column for column in self.table.c if not isinstance(column.type, SPARSEVEC)]

    async def put(self, session: Session, record_id: UUID, vector: Vector | None, *, generation: int) -> None:
        """Stores the vector of a record that has none of this generation; None queues the job that makes it."""
        if vector is None:
            job = NewJob("embed", payload={WORDS_OF: self.kind}, max_attempts=LONG_MAX_ATTEMPTS)
            await queue.enqueue(session, [job])
            return
        key = {"workspace_id": session.workspace_id, self.owner: record_id, "generation": generation}
        await session.execute(postgresql.insert(self.vectors).values(**key, embedding=vector))

    async def replace(self, session: Session, record_id: UUID, vector: Vector | None, *, generation: int) -> None:
        """Replaces the vectors of a record whose text has changed."""
        columns = self.vectors.c
        conditions = columns.workspace_id == session.workspace_id, columns[self.owner] == record_id
        await session.execute(delete(self.vectors).where(*conditions))
        await self.put(session, record_id, vector, generation=generation)

    async def unembedded(
        self, session: Session, where: ColumnElement[bool], *, generation: int, limit: int
    ) -> dict[UUID, CleanText]:
        """The texts of rows that meet a condition and have no vector of this generation."""
        row, vector = self.table.c, self.vectors.c
        its = vector.workspace_id == row.workspace_id, vector[self.owner] == row.id, vector.generation == generation
        embedded = select(vector.generation).where(*its).offset(0).exists()  # OFFSET: a join would read all vectors
        query = select(*self.columns).where(row.workspace_id == session.workspace_id, where, self.wanted, ~embedded)
        result = await session.execute(query.order_by(row.id).limit(limit))
        return {each.id: self.text_of(each) for each in result}

    async def store(self, session: Session, made: Mapping[UUID, tuple[CleanText, Vector]], *, generation: int) -> int:
        """Stores vectors, except for rows whose text has changed; returns how many. Locks the rows against changes."""
        row = self.table.c
        query = select(*self.columns).where(row.workspace_id == session.workspace_id, row.id.in_(made)).order_by(row.id)
        locked = await session.execute(query.with_for_update(read=True))
        rows = [
            {self.owner: each.id, "generation": generation, "embedding": made[each.id][1]}
            | {name: getattr(each, name) for name in self.copied}
            for each in locked
            if self.text_of(each) == made[each.id][0]
        ]
        if rows:
            await session.execute(postgresql.insert(self.vectors).on_conflict_do_nothing(), rows)
        return len(rows)
