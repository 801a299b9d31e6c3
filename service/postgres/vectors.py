"""Vectors in SQL: the expressions of their distances, and the binary form in which they travel.

Written out as text, 384 numbers cost 0.3 ms each time, and a store sends its vector three times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import Dialect

# -- distances to a parameter ------------------------------------------------------------------------------------------


def cosine(embedding: str, other: str = ":query_vector") -> str:
    """The cosine of two vectors, -1..1; NULL where there is none."""
    return f"1 - ({embedding} <=> {other})"


def exact_distance(embedding: str = "v.embedding") -> str:
    """The cosine distance to `:query_vector`, 0..2, computed for every row that is sorted by it. `+ 0` keeps the HNSW
    graph from serving the sort, and forces a real sort after a walk of the graph: the planner takes the relaxed order
    of its iterative scan for granted (measured .920 against .982 recall)."""
    return f"({embedding} <=> :query_vector) + 0"


def graph_distance(dimension: int, other: str = ":query_vector") -> str:
    """The distance that the HNSW graph of a generation is built on; an ORDER BY of it walks the graph."""
    return f"v.embedding::halfvec({int(dimension)}) <=> CAST({other} AS halfvec({int(dimension)}))"


BINARY_DISTANCE: Final = "v.binary_embedding <~> (SELECT binary_quantize(CAST(:query_vector AS halfvec)))"
"""How many bits of the binary quantisation of a vector differ from the query vector's: read from the scope's btree
alone, and nearly in the order of the cosines."""

# -- the binary form ---------------------------------------------------------------------------------------------------

HALFVEC_SCHEMA = """
SELECT n.nspname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typname = 'halfvec'
"""

WARM_TYPES = "SELECT NULL::sparsevec, NULL::uuid[], NULL::integer[], NULL::float8[], NULL::timestamptz[]"
"""Types of our statements that the driver looks up in the catalogue. All at once this takes 6 ms when a connection is
opened; one by one, when a statement first needs them, each look-up adds 3 to 9 ms to a request."""


class Half(HALFVEC):
    """The column and parameter type of our vectors: takes lists and arrays of shape (dimension,), gives lists."""

    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], HalfVector | None]:
        return lambda value: value if value is None or isinstance(value, HalfVector) else HalfVector(value)


async def register(connection: asyncpg.Connection[Any]) -> None:
    """Registers the binary form with a new connection; does nothing in a database without pgvector."""
    schema = await connection.fetchval(HALFVEC_SCHEMA)
    if schema is not None:
        await connection.set_type_codec(
            "halfvec", schema=schema, encoder=_binary, decoder=HalfVector.from_binary, format="binary"
        )
        await connection.fetch(WARM_TYPES)


def read_many(sent: Sequence[bytes]) -> NDArray[np.float32]:
    """Vectors of one dimension as rows. `sent`: results of halfvec_send(): four bytes, then the numbers in two bytes
    each. As bytes they cost no object of the driver's for each vector."""
    return np.frombuffer(b"".join(sent), dtype=">f2").reshape(len(sent), -1)[:, 2:].astype(np.float32)


def _binary(value: HalfVector | str) -> bytes:
    return (HalfVector.from_text(value) if isinstance(value, str) else value).to_binary()
