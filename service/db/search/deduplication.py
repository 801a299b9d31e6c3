"""Which live memories of exactly this scope stand beside a text? For deduplication, before and in the lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from sqlalchemy import TextClause, bindparam, select, text

from service.db import direct, filters, scopes
from service.db.conditions import Condition, typed
from service.db.direct import Row
from service.db.engine import Session, use_custom_plans
from service.db.search import nearest, visibility
from service.db.search.exact import CLOSE, OVERFETCH, passing
from service.db.tables import MemoryRow
from service.db.vectors import Half
from service.domain.decision import Neighbour
from service.domain.draft import Draft, EmbeddingStatus
from service.domain.scope import Scope
from service.domain.text import CleanText


@dataclass(frozen=True, slots=True)
class Beside:
    """The row with the same hash, if any, then the nearest by vector. `blocked`: a row with this text that no longer
    counts may still hold its place in uq_memory_dedup; False only where it was looked for."""

    neighbours: tuple[Neighbour, ...]
    blocked: bool = True


async def of_draft(
    session: Session,
    draft: Draft,
    *,
    generation: int,
    similarity: Callable[[float], float],
    limit: int,
    exact_rows: int,
) -> Beside:
    """What stands beside the draft; `similarity` 1.0 for an equal text.

    A filter of the caller narrows the nearest; an equal text is found all the same, for it cannot stand there twice.
    """
    now = draft.received_at
    if draft.vector is None or draft.embedding_status is not EmbeddingStatus.STORED:
        equal = await with_hash(session, draft.scope, draft.hash, now=now)
        return Beside((equal,) if equal else ())
    live = _live("m", now)
    wanted = live & filters.compiled("m", draft.given.compare) if draft.given.compare else live
    target = nearest.Target(scopes.exactly("v", draft.scope), wanted, generation)
    here = scopes.exactly("m", draft.scope) & visibility.live("m")
    values = {
        **here.values,
        **nearest.parameters(target, draft.vector, limit=limit, exact_rows=exact_rows),
        "hash": draft.hash,
    }
    close = max(CLOSE, limit * OVERFETCH)
    parts = (target.scope.sql, here.sql, wanted.sql, visibility.alive("m", now).sql, generation)
    shown = await direct.fetch(session, beside(*parts), values | {"exact_rows": min(close, exact_rows)})
    equals = [row for row in shown if row.arm == "equal"]
    if equals:
        return Beside(tuple(_neighbour(row, 1.0) for row in equals), blocked=False)
    blocked = any(row.arm == "gone" for row in shown)
    if _are_more(shown) and close < exact_rows:
        shown = await direct.fetch(session, beside_by_signs(*parts), values | {"close": close})
    if not _are_more(shown):
        near = (row for row in shown if row.arm == "near")
        return Beside(tuple(_neighbour(row, similarity(1.0 - row.distance)) for row in near), blocked)
    await use_custom_plans(session)
    found = await nearest.find(session, target, draft.vector, limit=limit, exact_rows=exact_rows)
    rows = await _texts(session, draft.scope.workspace_id, [each.id for each in found])
    near = (_neighbour(rows[each.id], similarity(each.cosine)) for each in found if each.id in rows)
    return Beside(tuple(near), blocked)


# Most scopes are small: for them one statement tells all, and costs a third of the planning of nearest.SHAPE. A scope
# of more than `exact_rows` rows answers with the row 'large', an expired one with the same text with 'gone'. Uses
# ix_memory_hash, ix_memory_vector_user, _agent or _run, and pk_memory, whatever the values: so its plan is kept
# (generic_plans). OFFSET 0: from the scope's vectors to their rows, however few a workspace has on average.
BESIDE = """
WITH counted AS (
    SELECT count(*) AS c FROM (SELECT 1 FROM memory_vector v WHERE {scope} AND {vectors} LIMIT :exact_rows + 1) AS few
)
(SELECT CASE WHEN {alive} THEN 'equal' ELSE 'gone' END AS arm, m.id, m.content, m.hash, m.version,
        CAST(0 AS float8) AS distance
 FROM memory m WHERE m.hash = :hash AND m.dedup_key = :hash AND {here} LIMIT 1)
UNION ALL
(SELECT 'near', m.id, m.content, m.hash, m.version, (v.embedding <=> :question) + 0
 FROM memory_vector v CROSS JOIN LATERAL (
     SELECT m.id, m.content, m.hash, m.version FROM memory m
     WHERE m.workspace_id = :workspace AND m.id = v.memory_id AND {wanted} OFFSET 0
 ) m
 WHERE (SELECT c FROM counted) <= :exact_rows AND {scope} AND {vectors}
 ORDER BY (v.embedding <=> :question) + 0 LIMIT :wanted)
UNION ALL
SELECT 'large', NULL, NULL, NULL, NULL, NULL FROM counted WHERE c > :exact_rows
ORDER BY distance
"""

# The same of a scope with more rows: only the nearest `close` by signs that the conditions let through are compared
# exactly, by pk_memory_vector. The count keeps a scope of more than `exact_rows` rows from being read.
BY_SIGNS = """
WITH counted AS (
    SELECT count(*) AS c FROM (SELECT 1 FROM memory_vector v WHERE {scope} AND {vectors} LIMIT :exact_rows + 1) AS few
)
(SELECT 'near' AS arm, m.id, m.content, m.hash, m.version, near.distance FROM (
    SELECT v.memory_id AS id, (v.embedding <=> :question) + 0 AS distance FROM memory_vector v
    WHERE v.workspace_id = :workspace AND {vectors} AND v.memory_id = ANY ({passing})
    ORDER BY distance LIMIT :wanted
) near JOIN memory m ON m.workspace_id = :workspace AND m.id = near.id)
UNION ALL
SELECT 'large', NULL, NULL, NULL, NULL, NULL FROM counted WHERE c > :exact_rows
ORDER BY distance
"""


@lru_cache(maxsize=64)
def beside(scope: str, here: str, wanted: str, alive: str, generation: int) -> TextClause:
    return _filled(BESIDE, scope, here, wanted, alive, generation)


@lru_cache(maxsize=64)
def beside_by_signs(scope: str, here: str, wanted: str, alive: str, generation: int) -> TextClause:
    return _filled(BY_SIGNS, scope, here, wanted, alive, generation)


def _filled(shape: str, scope: str, here: str, wanted: str, alive: str, generation: int) -> TextClause:
    vectors = f"v.generation = {int(generation)} AND v.kind = 'text'"
    read = f"(SELECT c FROM counted) <= :exact_rows AND {scope} AND {vectors}"  # noqa: S608 - pieces of our own
    near = passing(read, wanted, close="close")
    filled = shape.format(scope=scope, here=here, wanted=wanted, alive=alive, vectors=vectors, passing=near)
    return typed(text(filled)).bindparams(bindparam("question", type_=Half()))


def _are_more(shown: Sequence[Row]) -> bool:
    """Did the scope turn out to have more rows than were to be looked at?"""
    return any(row.arm == "large" for row in shown)


def _neighbour(row: Row, similarity: float) -> Neighbour:
    return Neighbour(row.id, CleanText(row.content), row.hash, row.version, similarity)


async def with_hash(session: Session, scope: Scope, wanted: str, *, now: datetime) -> Neighbour | None:
    """The live row with this hash that takes part in deduplication. Uses ix_memory_hash."""
    here = scopes.exactly("m", scope) & _live("m", now)
    row = await direct.first(session, _with_hash(here.sql), {**here.values, "hash": wanted})
    return _neighbour(row, 1.0) if row else None


@lru_cache(maxsize=64)
def _with_hash(here: str) -> TextClause:
    found = "SELECT m.id, m.content, m.hash, m.version FROM memory m"
    return typed(text(f"{found} WHERE m.hash = :hash AND m.dedup_key = :hash AND {here} LIMIT 1"))


async def with_hashes(
    session: Session, scope: Scope, wanted: Sequence[str], *, now: datetime
) -> dict[str, tuple[UUID, str]]:
    """Id and text of the live rows among these hashes, for a whole conversation at once."""
    here = scopes.exactly("memory", scope) & _live("memory", now)
    rows = await session.execute(
        select(MemoryRow.hash, MemoryRow.id, MemoryRow.content).where(
            here.clause, MemoryRow.hash.in_(wanted), MemoryRow.dedup_key == MemoryRow.hash
        )
    )
    return {row.hash: (row.id, row.content) for row in rows}


def _live(alias: str, now: datetime) -> Condition:
    return visibility.live(alias) & visibility.alive(alias, now) & visibility.comparable(alias)


TEXTS = typed(text("SELECT id, content, hash, version FROM memory WHERE workspace_id = :workspace AND id = ANY(:ids)"))


async def _texts(session: Session, workspace_id: UUID, ids: list[UUID]) -> dict[UUID, Row]:
    if not ids:
        return {}
    rows = await direct.fetch(session, TEXTS, {"workspace": workspace_id, "ids": ids})
    return {row.id: row for row in rows}
