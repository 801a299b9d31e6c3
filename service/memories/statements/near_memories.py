"""Live memories of exactly one scope near a text, or near each of many: these are compared, before and inside the lock.

Most scopes are small enough to be compared in one statement (COMPARE). In a larger one NEAREST finds the nearest
vectors: with two arms, chosen by one-time filters. In a scope of more than `exact_rows` rows the generation's HNSW
graph is searched with over-fetch; in a smaller one, or if that yields fewer than `limit`, all are compared exactly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import TextClause

from service.domain import sizes
from service.domain.decision import Neighbour
from service.domain.draft import Draft, EmbeddingStatus
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.memories.statements import visibility
from service.postgres import direct, filters, scopes
from service.postgres.direct import DriverRow
from service.postgres.engine import Session, use_custom_plans
from service.postgres.scopes import Condition
from service.postgres.template import Template, typed_text
from service.postgres.vectors import BINARY_DISTANCE, exact_distance, graph_distance
from service.providers.protocols import Vector

OVERFETCH = 4
"""Vectors are chosen by binary distance, or by the graph, and then compared exactly: this many times those wanted. Of a
million vectors 200 from the graph gave the same ten nearest as 400, in three quarters of the time (60 queries without a
condition and 60 that half of the rows meet)."""

MIN_CLOSE, MAX_CLOSE = 200, 800
"""The minimum and maximum number chosen by binary distance, unless more are wanted. All of the ten nearest in 3,000,
20,000 and 100,000 vectors were among the first 200, 400 and 800 (200 queries, 384 components)."""

CLOSE_LIMIT = "greatest(:min_close, least(:max_close, {rows} / 40))"
"""SQL: how many of `rows` vectors are chosen by binary distance, with the values of `close_limits`."""

MAX_FROM_GRAPH = 400
"""The maximum number that the graph returns, unless more are wanted; hnsw.ef_search on the role is as large."""


def close_limits(wanted: int) -> dict[str, int]:
    """The limits of how many vectors are chosen by binary distance."""
    return {"min_close": max(MIN_CLOSE, wanted * OVERFETCH), "max_close": MAX_CLOSE}


def graph_limit(wanted: int) -> int:
    """How many vectors the graph is asked for."""
    return min(wanted * OVERFETCH, MAX_FROM_GRAPH)


# Uses ix_memory_vector_user, _agent or _run for the scope, and ix_memory_vector_hnsw_<generation> for the first arm.
NEAREST = Template(
    """
WITH counted AS (
    SELECT count(*) AS vectors FROM (SELECT 1 FROM memory_vector v WHERE {vectors} LIMIT :exact_rows + 1) AS few
), approximate AS MATERIALIZED (
    SELECT v.memory_id, {graph_distance} AS distance
    FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id
    WHERE (SELECT vectors FROM counted) > :exact_rows AND {vectors} AND {rows}
    ORDER BY {graph_distance} LIMIT :wide
), exact AS (
    SELECT v.memory_id, {exact_distance} AS distance
    FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id
    WHERE (SELECT count(*) FROM approximate) < :limit AND {vectors} AND {rows}
    ORDER BY {exact_distance} LIMIT :limit
)
SELECT memory_id, distance FROM approximate WHERE (SELECT count(*) FROM approximate) >= :limit
UNION ALL SELECT memory_id, distance FROM exact
ORDER BY distance LIMIT :limit
""",
    exact_distance=exact_distance(),
)


async def find_nearest(
    session: Session, scope: Condition, rows: Condition, vector: Vector, *, generation: int, limit: int
) -> list[tuple[UUID, float]]:
    """Memories with their cosine, nearest first: exactly min(limit, matching rows). `scope`: a condition on
    `memory_vector v`, `rows`: one on `memory m` (everything else)."""
    near = await session.execute(*nearest_statement(scope, rows, vector, generation=generation, limit=limit))
    return [(row.memory_id, 1.0 - row.distance) for row in near]


def nearest_statement(
    scope: Condition, rows: Condition, vector: Vector, *, generation: int, limit: int
) -> tuple[TextClause, dict[str, Any]]:
    """The statement with its values; tests/search/statements/golden has it with the values filled in."""
    in_scope = f"{scope.sql} AND v.generation = {generation} AND v.kind = 'text'"
    wide = max(limit, graph_limit(limit))
    values = {"query_vector": vector, "limit": limit, "wide": wide, "exact_rows": sizes.EXACT_ROWS}
    filled = NEAREST.fill(vectors=in_scope, rows=rows.sql, graph_distance=graph_distance(len(vector)))
    return filled, {**scope.values, **rows.values, **values}


def nearest_passing(these: str, rows: str, *, most: str, checked: str = "") -> str:
    """SQL of the ids of the nearest vectors by binary distance whose rows meet the conditions. `these`: the FROM item
    of the vectors, read from the scope's btree alone. The nearest (`checked`: a LIMIT) are checked against `rows` one
    by one in order, by their key (a range of one value, see scopes.by_key), until `most` have met them."""
    return f"""ARRAY(
        SELECT passing.id FROM (
            SELECT v.memory_id, {BINARY_DISTANCE} AS bits FROM {these}
            ORDER BY bits, v.memory_id {checked}
        ) by_bits CROSS JOIN LATERAL (
            SELECT m.id FROM memory m
            WHERE m.workspace_id = :workspace AND m.id >= by_bits.memory_id AND m.id <= by_bits.memory_id AND {rows}
            ORDER BY m.id LIMIT 1
        ) passing LIMIT {most})"""  # noqa: S608 - no user input


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The row with the same hash, if any, else the nearest by vector. `expired_duplicate_possible`: an expired row may
    still hold this hash in uq_memory_dedup; False only if it was looked for."""

    neighbours: tuple[Neighbour, ...]
    expired_duplicate_possible: bool = True


async def find_neighbours(
    session: Session, draft: Draft, *, generation: int, similarity: Callable[[float], float], limit: int
) -> Neighbours:
    """The neighbours of the draft; `similarity` 1.0 for an equal text.

    A filter of the caller restricts the nearest ones; an equal text is still found, because a scope cannot hold the
    same text twice.
    """
    now = draft.received_at
    if draft.vector is None or draft.embedding_status is not EmbeddingStatus.STORED:
        equal = await with_hash(session, draft.scope, draft.hash, now=now)
        return Neighbours((equal,) if equal else ())
    rows = _live("m", now)
    rows = rows & filters.compile_filter("m", draft.given.dedup_filter) if draft.given.dedup_filter else rows
    vectors = scopes.exact("v", draft.scope)
    in_scope = scopes.exact("m", draft.scope) & visibility.not_archived("m")
    statement = compare(vectors, in_scope, rows, now, generation=generation)
    values = {**in_scope.values, **vectors.values, **rows.values, "hash": draft.hash, "query_vector": draft.vector}
    values |= {"limit": limit, "exact_rows": sizes.EXACT_ROWS, **close_limits(limit)}
    compared = await direct.fetch(session, statement, values)
    arms = {row.arm for row in compared}
    if "equal" in arms:
        equals = (neighbour(row, 1.0) for row in compared if row.arm == "equal")
        return Neighbours(tuple(equals), expired_duplicate_possible=False)
    expired = "expired" in arms
    if "large" not in arms:
        near = (row for row in compared if row.arm == "near")
        found = (neighbour(row, similarity(1.0 - row.distance), row.vector.to_numpy()) for row in near)
        return Neighbours(tuple(found), expired)
    await use_custom_plans(session)
    cosines = dict(await find_nearest(session, vectors, rows, draft.vector, generation=generation, limit=limit))
    texts = await direct.fetch(session, TEXTS, {"ids": list(cosines), "generation": generation})
    by_id = {row.id: row for row in texts}
    known = ((by_id[memory_id], cosine) for memory_id, cosine in cosines.items() if memory_id in by_id)
    seen = (neighbour(row, similarity(cosine), row.vector.to_numpy()) for row, cosine in known)
    return Neighbours(tuple(seen), expired)


# Most scopes are small enough for one statement, which costs a third of the planning of NEAREST: the nearest by
# binary distance that meet the conditions are compared exactly. A scope of more than `exact_rows` rows is not read and
# answers with the row 'large'; an expired row with the same text is 'expired'. Uses uq_memory_dedup,
# ix_memory_vector_user, _agent or _run, pk_memory and pk_memory_vector, whatever the values: so its plan is kept
# (generic_plans). Without statistics only a range of one value in the order of the key leaves no other index to choose.
COMPARE = Template(
    """
WITH counted AS (
    SELECT count(*) AS vectors FROM (SELECT 1 FROM memory_vector v WHERE {vectors} LIMIT :exact_rows + 1) AS few
)
(SELECT CASE WHEN {alive} THEN 'equal' ELSE 'expired' END AS arm, m.id, m.content, m.hash, m.version,
        m.timestamp, m.t_valid, m.t_invalid, CAST(0 AS float8) AS distance, CAST(NULL AS halfvec) AS vector
 FROM memory m WHERE m.hash >= :hash AND m.hash <= :hash AND m.dedup_key = :hash AND {in_scope} ORDER BY m.hash LIMIT 1)
UNION ALL
(SELECT 'near', m.id, m.content, m.hash, m.version, m.timestamp, m.t_valid, m.t_invalid, near.distance, near.vector
 FROM (
    SELECT v.memory_id AS id, {distance} AS distance, v.embedding AS vector FROM memory_vector v
    WHERE v.workspace_id = :workspace AND {of_kind} AND v.memory_id = ANY ({close_ids})
    ORDER BY distance LIMIT :limit
 ) near CROSS JOIN LATERAL ({memory}) m)
UNION ALL
SELECT 'large', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM counted WHERE vectors > :exact_rows
ORDER BY distance
""",
    memory=scopes.by_key("memory", "near.id"),
    distance=exact_distance(),
)

WITHIN_LIMIT = "(SELECT vectors FROM counted) <= :exact_rows"
CLOSE = f"(SELECT {CLOSE_LIMIT.format(rows='vectors')} FROM counted)"  # noqa: S608 - no user input


def compare(vectors: Condition, in_scope: Condition, rows: Condition, now: datetime, *, generation: int) -> TextClause:
    """COMPARE with these conditions: the scope of `memory_vector v`, an equal row of `memory m`, and a neighbour."""
    of_kind = f"v.generation = {generation} AND v.kind = 'text'"
    of_scope = f"{vectors.sql} AND {of_kind}"
    close = nearest_passing(f"memory_vector v WHERE {WITHIN_LIMIT} AND {of_scope}", rows.sql, most=CLOSE)
    alive = visibility.not_expired_nor_in_review("m", now).sql
    return COMPARE.fill(vectors=of_scope, of_kind=of_kind, in_scope=in_scope.sql, alive=alive, close_ids=close)


def neighbour(row: DriverRow, similarity: float, vector: NDArray[np.float32] | None = None) -> Neighbour:
    """The row of a memory as decisions use it."""
    text, times = CleanText(row.content), (row.timestamp, row.t_valid, row.t_invalid)
    return Neighbour(row.id, text, row.hash, row.version, similarity, *times, vector)


WITH_HASHES = Template("""
SELECT m.id, m.content, m.hash, m.version, m.timestamp, m.t_valid, m.t_invalid FROM memory m
WHERE m.dedup_key = ANY (CAST(:hashes AS text[])) AND m.dedup_key = m.hash AND {in_scope}
""")


async def with_hash(session: Session, scope: Scope, wanted: str, *, now: datetime) -> Neighbour | None:
    """The live row with this hash that takes part in deduplication."""
    return (await with_hashes(session, scope, [wanted], now=now)).get(wanted)


async def with_hashes(
    session: Session, scope: Scope, wanted: Collection[str], *, now: datetime
) -> dict[str, Neighbour]:
    """The live rows with these hashes that take part in deduplication. Uses uq_memory_dedup."""
    in_scope = scopes.exact("m", scope) & _live("m", now)
    rows = await direct.fetch(
        session, WITH_HASHES.fill(in_scope=in_scope.sql), {**in_scope.values, "hashes": list(wanted)}
    )
    return {row.hash: neighbour(row, 1.0) for row in rows}


def _live(alias: str, now: datetime) -> Condition:
    """The condition on rows that others are compared with."""
    unexpired = visibility.not_expired_nor_in_review(alias, now)
    return visibility.not_archived(alias) & unexpired & visibility.may_be_compared(alias)


TEXTS = typed_text(
    "SELECT m.id, m.content, m.hash, m.version, m.timestamp, m.t_valid, m.t_invalid, v.embedding AS vector"
    " FROM memory m JOIN memory_vector v ON v.workspace_id = m.workspace_id AND v.memory_id = m.id"
    " WHERE m.workspace_id = :workspace AND m.id = ANY(:ids) AND v.generation = :generation AND v.kind = 'text'"
)


# -- many texts: the scope's vectors are read once for all and compared here. Comparing them row by row in the database
# took up to 800 look-ups by key for each text.

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
TEXTS_AND_EQUAL = Template("""
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
    """The neighbours of each draft as `find_neighbours` gives them; all drafts are of one scope and have a
    vector. None where the scope has more than EXACT_ROWS rows."""
    scope, now = drafts[0].scope, drafts[0].received_at
    wanted = np.stack([draft.vector for draft in drafts if draft.vector is not None])
    in_scope, vectors = scopes.exact("m", scope), scopes.exact("v", scope)
    unexpired = visibility.not_expired_nor_in_review("m", now)
    alive = _live("m", now)
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
    of_texts = TEXTS_AND_EQUAL.fill(in_scope=in_scope.sql, not_expired=unexpired.sql)
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
