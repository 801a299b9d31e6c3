"""Live memories of exactly one scope near each of many texts: a batch is compared with these, before and inside the
lock.

The scope's vectors are read once for all texts and compared here: comparing them row by row in the database took up to
800 look-ups by key for each text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.domain import sizes
from service.domain.draft import Draft
from service.memories.statements import visibility
from service.memories.statements.deduplication import Neighbours, live, neighbour
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.template import Template

# As one value each, which costs nothing per row. Uses ix_memory_user, _agent or _run, and ix_memory_vector_user, _agent
# or _run: whatever the statistics say, no row is looked up by the key of another one.
VECTORS = Template("""
SELECT (SELECT string_agg(uuid_send(m.id), '') FROM memory m WHERE {in_scope} AND {alive}) AS alive,
       (SELECT string_agg(uuid_send(few.memory_id) || halfvec_send(few.embedding), '') FROM (
            SELECT v.memory_id, v.embedding FROM memory_vector v
            WHERE {vectors} AND v.generation = :generation AND v.kind = 'text' LIMIT :exact_rows + 1
        ) few) AS vectors
""")

# Rows by their keys, and those that have one of the texts.
TEXTS = Template("""
SELECT 'near' AS arm, m.id, m.content, m.hash, m.version, m.timestamp, m.t_valid, m.t_invalid FROM memory m
WHERE m.workspace_id = :workspace AND m.id = ANY (CAST(:ids AS uuid[]))
UNION ALL
SELECT CASE WHEN {not_expired} THEN 'equal' ELSE 'expired' END,
       m.id, m.content, m.hash, m.version, m.timestamp, m.t_valid, m.t_invalid FROM memory m
WHERE m.hash = ANY (CAST(:hashes AS text[])) AND m.dedup_key = m.hash AND NOT m.archived AND {in_scope}
""")

HEADER_BYTES = 4
"""The header of halfvec_send: the number of dimensions, and an unused field; then two bytes for each dimension."""


async def find_neighbours_of_many(
    session: Session, drafts: Sequence[Draft], *, generation: int, similarity: Callable[[float], float], limit: int
) -> list[Neighbours] | None:
    """The neighbours of each draft as deduplication.find_neighbours gives them; all drafts are of one scope and have a
    vector. None where the scope has more than EXACT_ROWS rows."""
    scope, now = drafts[0].scope, drafts[0].received_at
    wanted = np.stack([draft.vector for draft in drafts if draft.vector is not None])
    in_scope, vectors = scopes.exact("m", scope), scopes.exact("v", scope)
    unexpired = visibility.not_expired_nor_in_review("m", now)
    alive = live("m", now)
    exact_rows = sizes.EXACT_ROWS
    values = {**in_scope.values, **vectors.values, **alive.values, "generation": generation, "exact_rows": exact_rows}
    row = await direct.first(session, VECTORS.fill(in_scope=in_scope.sql, alive=alive.sql, vectors=vectors.sql), values)
    assert row is not None, "an aggregate has a row"
    size = 16 + HEADER_BYTES + 2 * wanted.shape[1]
    if len(row.vectors or b"") // size > exact_rows:
        return None
    near = await asyncio.to_thread(_nearest, row.alive or b"", row.vectors or b"", wanted, limit)
    ids = list({each for one in near for each, _, _ in one})
    hashes = [draft.hash for draft in drafts]
    of_texts = TEXTS.fill(in_scope=in_scope.sql, not_expired=unexpired.sql)
    texts = await direct.fetch(session, of_texts, {**in_scope.values, "now": now, "ids": ids, "hashes": hashes})
    return _put_together(drafts, near, texts, similarity)


def _put_together(
    drafts: Sequence[Draft],
    near: Sequence[Sequence[tuple[UUID, float, NDArray[np.float32]]]],
    texts: Sequence[Any],
    similarity: Callable[[float], float],
) -> list[Neighbours]:
    by_id = {row.id: row for row in texts if row.arm == "near"}
    equal = {row.hash: row for row in texts if row.arm == "equal"}
    expired = {row.hash for row in texts if row.arm == "expired"}
    neighbours = []
    for draft, ranked in zip(drafts, near, strict=True):
        if draft.hash in equal:
            neighbours.append(Neighbours((neighbour(equal[draft.hash], 1.0),), expired_duplicate_possible=False))
            continue
        seen = tuple(neighbour(by_id[each], similarity(cosine), own) for each, cosine, own in ranked if each in by_id)
        neighbours.append(Neighbours(seen, expired_duplicate_possible=draft.hash in expired))
    return neighbours


def _nearest(
    alive: bytes, vectors: bytes, wanted: NDArray[np.float32], limit: int
) -> list[list[tuple[UUID, float, NDArray[np.float32]]]]:
    """For each wanted vector the ids of the nearest live rows with their cosines and vectors, nearest first."""
    row = np.dtype([("id", "V16"), ("header", f"V{HEADER_BYTES}"), ("vector", ">f2", (wanted.shape[1],))])
    stored = np.frombuffer(vectors, row)
    live = {alive[at : at + 16] for at in range(0, len(alive), 16)}
    ids = [each.tobytes() for each in stored["id"]]
    places = [index for index, each in enumerate(ids) if each in live]
    if not places:
        return [[] for _ in wanted]
    vectors_alive = stored["vector"][places].astype(np.float32)
    vectors_alive /= np.linalg.norm(vectors_alive, axis=1, keepdims=True)
    cosines = wanted @ vectors_alive.T
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :limit]
    return [
        [(UUID(bytes=ids[places[at]]), float(of_one[at]), vectors_alive[at]) for at in order]
        for of_one, order in zip(cosines, nearest, strict=True)
    ]
