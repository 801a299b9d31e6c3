"""Vectors in SQL: the columns of terms and their weights, the expressions of distances, and the type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import Dialect

TERM_DIMENSIONS = 1_000_000_000
"""Length of the sparse BM25 vectors: term ids are hashes below it (pgvector's maximum)."""


def term_columns(weights: Mapping[int, float]) -> dict[str, Any]:
    """The columns with the terms of a text: their ids, and their BM25 weights by id."""
    return {"terms": sorted(weights), "bm25": SparseVector(dict(weights), TERM_DIMENSIONS) if weights else None}


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

# -- the type ----------------------------------------------------------------------------------------------------------


class Half(HALFVEC):
    """The column and parameter type of our vectors: takes lists and arrays of shape (dimension,), gives lists."""

    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], HalfVector | None]:
        return lambda value: value if value is None or isinstance(value, HalfVector) else HalfVector(value)


def read_many(sent: Sequence[bytes]) -> NDArray[np.float32]:
    """Vectors of one dimension as rows. `sent`: results of halfvec_send(): four bytes, then the numbers in two bytes
    each. As bytes they cost no object of the driver's for each vector."""
    return np.frombuffer(b"".join(sent), dtype=">f2").reshape(len(sent), -1)[:, 2:].astype(np.float32)


def as_text(vector: NDArray[np.float32]) -> str:
    """pgvector's text form, for an array of vectors in one parameter."""
    return HalfVector(vector).to_text()
