"""Embedding generations: the embedder that made the vectors, as the database records it.

docs/decisions/005-vector-generations.md
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from service.db import roles
from service.db.engine import Database
from service.db.tables import EmbeddingGenerationRow
from service.errors import StoreUnavailable


@dataclass(frozen=True, slots=True)
class Generation:
    """A set of vectors made by one model."""

    number: int
    model: str
    dimension: int

    def must_be(self, model: str, dimension: int) -> None:
        """Raises StoreUnavailable when another embedder is configured than the one that made the vectors."""
        if (self.model, self.dimension) != (model, dimension):
            raise StoreUnavailable(
                f"This database was embedded with {self.model} ({self.dimension} dimensions), but {model} "
                f"({dimension}) is configured. Set LOXODON_EMBEDDER_PROVIDER and LOXODON_EMBEDDER_MODEL back, "
                "or re-embed."
            )


async def active(database: Database) -> Generation:
    """The generation that searches use; raises StoreUnavailable before the first migration."""
    async with database.read() as session:
        table = EmbeddingGenerationRow
        row = (
            await session.execute(select(table.generation, table.model, table.dimension).where(table.state == "active"))
        ).one_or_none()
    if row is None:
        raise StoreUnavailable("The database has no embedding generation yet: run the migrations first.")
    return Generation(*row)


async def record_first(owner_url: str, model: str, dimension: int) -> None:
    """Records generation 1 unless there is one; the baseline migration made its index for `dimension`."""
    engine = create_async_engine(owner_url, poolclass=NullPool)
    try:
        async with engine.begin() as session:
            await session.execute(text(f"SET LOCAL ROLE {roles.OWNER}"))
            row = {"generation": 1, "model": model, "dimension": dimension, "state": "active"}
            await session.execute(insert(EmbeddingGenerationRow).values(row).on_conflict_do_nothing())
    finally:
        await engine.dispose()
