"""Embedding generations: the embedder that made the vectors, as the database records it.

One is active: all searches use its vectors. Another may be being built; earlier ones are kept until they are dropped.
See docs/decisions/065-re-embedding.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from service.domain.errors import StoreUnavailable
from service.postgres import rights
from service.postgres.engine import Database, Session
from service.postgres.tables import EMBEDDING_GENERATION

GenerationState = Literal["active", "building", "retired", "dropped"]
"""building: its vectors are being made; retired: kept for a roll-back; dropped: its vectors are deleted, or soon will
be."""

ACTIVATE = text("SELECT activate_generation(:number)")


@dataclass(frozen=True, slots=True)
class Generation:
    """A set of vectors made by one model."""

    number: int
    model: str
    dimension: int
    state: GenerationState = "active"

    def __str__(self) -> str:
        return f"{self.model} ({self.dimension} dimensions)"


async def read_all(database: Database) -> list[Generation]:
    """All generations, the oldest first; raises StoreUnavailable before the first migration."""
    async with database.read() as session:
        return await read_all_in(session)


async def read_all_in(session: AsyncConnection) -> list[Generation]:
    """All generations, oldest first, in the caller's transaction."""
    table = EMBEDDING_GENERATION.c
    rows = await session.execute(
        select(table.generation, table.model, table.dimension, table.state).order_by(table.generation)
    )
    generations = [
        Generation(row.generation, row.model, row.dimension, cast(GenerationState, row.state)) for row in rows
    ]
    if not any(generation.state == "active" for generation in generations):
        raise StoreUnavailable("The database has no embedding generation yet: run the migrations first.")
    return generations


def in_state(generations: list[Generation], state: GenerationState) -> Generation | None:
    """The last of them in this state."""
    return next((generation for generation in reversed(generations) if generation.state == state), None)


def active_of(generations: list[Generation]) -> Generation:
    """The generation that searches use, of those of `read_all`, which has seen one."""
    return next(generation for generation in generations if generation.state == "active")


async def activate(session: Session, number: int) -> bool:
    """The cut-over: searches that begin after the commit use this generation, and the active one is retired. False if
    it is no longer being built. As loxodon_worker only."""
    return bool(await session.scalar(ACTIVATE, {"number": number}))


async def record_first(owner_url: str, model: str, dimension: int) -> None:
    """Records generation 1 unless it exists; the baseline migration made its index for `dimension`."""
    async with rights.owner_transaction(owner_url) as session:
        row: dict[str, Any] = {"generation": 1, "model": model, "dimension": dimension, "state": "active"}
        first = insert(EMBEDDING_GENERATION).values(row | {"activated_at": func.now()})
        await session.execute(first.on_conflict_do_nothing())
