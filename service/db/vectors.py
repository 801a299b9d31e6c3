"""How does a vector travel to Postgres and back?

In binary. Written out as text, 384 numbers cost 0.3 ms each time, and a store sends its vector three times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asyncpg  # type: ignore[import-untyped]
from pgvector import HalfVector
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import Dialect

WHERE = "SELECT n.nspname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typname = 'halfvec'"


TYPES = "SELECT NULL::sparsevec, NULL::uuid[], NULL::integer[], NULL::float8[], NULL::timestamptz[]"
"""Types of our statements that the driver has to look up in the catalogue. All at once takes 6 ms when a connection is
opened; one by one, as statements bring them along, each look-up takes 3 to 9 ms of somebody's first search."""


class Half(HALFVEC):
    """The column and parameter type of our vectors: takes lists and arrays of shape (dimension,), gives lists."""

    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], HalfVector | None]:
        return lambda value: value if value is None or isinstance(value, HalfVector) else HalfVector(value)


async def register(connection: asyncpg.Connection[Any]) -> None:
    """Teaches a new connection the binary form; a database without pgvector has none to teach."""
    schema = await connection.fetchval(WHERE)
    if schema is not None:
        await connection.set_type_codec(
            "halfvec", schema=schema, encoder=_binary, decoder=HalfVector.from_binary, format="binary"
        )
        await connection.fetch(TYPES)


def _binary(value: HalfVector | str) -> bytes:
    return (HalfVector.from_text(value) if isinstance(value, str) else value).to_binary()
