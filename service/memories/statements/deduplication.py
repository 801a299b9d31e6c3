"""Live memories of exactly one scope near a text, or each of many: these are compared, before and inside the lock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import TextClause

from service.domain import sizes
from service.domain.decision import Neighbour
from service.domain.draft import Draft, EmbeddingStatus
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.memories.statements import nearest, visibility
from service.memories.statements.nearest import nearest_passing
from service.postgres import direct, filters, scopes
from service.postgres.direct import DriverRow
from service.postgres.engine import Session, use_custom_plans
from service.postgres.scopes import Condition
from service.postgres.template import Template, typed_text
from service.postgres.vectors import exact_distance


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
    rows = live("m", now)
    rows = rows & filters.compile_filter("m", draft.given.dedup_filter) if draft.given.dedup_filter else rows
    vectors = scopes.exact("v", draft.scope)
    in_scope = scopes.exact("m", draft.scope) & visibility.not_archived("m")
    parts = Parts(vectors.sql, in_scope.sql, rows.sql, visibility.not_expired_nor_in_review("m", now).sql, generation)
    values = {**in_scope.values, **vectors.values, **rows.values, "hash": draft.hash, "query_vector": draft.vector}
    values |= {"limit": limit, "exact_rows": sizes.EXACT_ROWS, **nearest.close_limits(limit)}
    compared = await direct.fetch(session, compare(parts), values)
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
    cosines = dict(await nearest.find(session, vectors, rows, draft.vector, generation=generation, limit=limit))
    texts = await _texts(session, list(cosines), generation)
    known = ((texts[each], cosine) for each, cosine in cosines.items() if each in texts)
    seen = (neighbour(row, similarity(cosine), row.vector.to_numpy()) for row, cosine in known)
    return Neighbours(tuple(seen), expired)


# Most scopes are small enough for one statement, which costs a third of the planning of nearest.NEAREST: the nearest by
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
CLOSE = f"(SELECT {nearest.CLOSE_LIMIT.format(rows='vectors')} FROM counted)"  # noqa: S608 - our own part


class Parts(NamedTuple):
    """SQL of the conditions: the scope of `memory_vector v`, an equal row of `memory m`, a neighbour, one that has not
    expired; and the generation of the vectors."""

    scope: str
    in_scope: str
    rows: str
    alive: str
    generation: int


def compare(parts: Parts) -> TextClause:
    """COMPARE with these conditions."""
    of_kind = f"v.generation = {parts.generation} AND v.kind = 'text'"
    vectors = f"{parts.scope} AND {of_kind}"
    close = nearest_passing(f"memory_vector v WHERE {WITHIN_LIMIT} AND {vectors}", parts.rows, most=CLOSE)
    return COMPARE.fill(
        vectors=vectors,
        of_kind=of_kind,
        in_scope=parts.in_scope,
        alive=parts.alive,
        close_ids=close,
    )


def neighbour(row: DriverRow, similarity: float, vector: NDArray[np.float32] | None = None) -> Neighbour:
    """The row of a memory as decisions use it."""
    text, times = CleanText(row.content), (row.timestamp, row.t_valid, row.t_invalid)
    return Neighbour(row.id, text, row.hash, row.version, similarity, *times, vector)


WITH_HASHES = Template("""
SELECT m.id, m.content, m.hash, m.version, m.timestamp, m.t_valid, m.t_invalid FROM memory m
WHERE m.hash = ANY (CAST(:hashes AS text[])) AND m.dedup_key = m.hash AND {in_scope}
""")


async def with_hash(session: Session, scope: Scope, wanted: str, *, now: datetime) -> Neighbour | None:
    """The live row with this hash that takes part in deduplication."""
    return (await with_hashes(session, scope, [wanted], now=now)).get(wanted)


async def with_hashes(
    session: Session, scope: Scope, wanted: Collection[str], *, now: datetime
) -> dict[str, Neighbour]:
    """The live rows with these hashes that take part in deduplication. Uses ix_memory_hash."""
    in_scope = scopes.exact("m", scope) & live("m", now)
    rows = await direct.fetch(
        session, WITH_HASHES.fill(in_scope=in_scope.sql), {**in_scope.values, "hashes": list(wanted)}
    )
    return {row.hash: neighbour(row, 1.0) for row in rows}


def live(alias: str, now: datetime) -> Condition:
    """The condition on rows that others are compared with."""
    return (
        visibility.not_archived(alias)
        & visibility.not_expired_nor_in_review(alias, now)
        & visibility.may_be_compared(alias)
    )


TEXTS = typed_text(
    "SELECT m.id, m.content, m.hash, m.version, m.timestamp, m.t_valid, m.t_invalid, v.embedding AS vector"
    " FROM memory m JOIN memory_vector v ON v.workspace_id = m.workspace_id AND v.memory_id = m.id"
    " WHERE m.workspace_id = :workspace AND m.id = ANY(:ids) AND v.generation = :generation AND v.kind = 'text'"
)


async def _texts(session: Session, ids: list[UUID], generation: int) -> dict[UUID, DriverRow]:
    if not ids:
        return {}
    rows = await direct.fetch(session, TEXTS, {"ids": ids, "generation": generation})
    return {row.id: row for row in rows}


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
