"""Which memories stand on a page of a list, and how many are there in all?

Pages go by a key, value and id of the last row, so rows that come or go shift nothing. The newest first walks
ix_memory_user, _agent or _run; another order sorts what the scope's btree and the filters leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import DateTime, Double, TextClause, bindparam, text
from sqlalchemy.types import TypeEngine

from service.db.conditions import Condition, typed
from service.db.engine import Session

Sort = Literal["created_at", "updated_at", "timestamp", "importance"]
Key = datetime | float

COUNTED: Final = 10_000
"""Rows that are counted one by one; of more the planner tells an estimate."""

MOMENT: Final = DateTime(timezone=True)
KEYS: Final[Mapping[Sort, TypeEngine[datetime] | TypeEngine[float]]] = {
    "created_at": MOMENT,
    "updated_at": MOMENT,
    "timestamp": MOMENT,
    "importance": Double(),
}


@dataclass(frozen=True, slots=True)
class Order:
    """`sort` names the column; equal ones go by their id."""

    sort: Sort = "created_at"
    ascending: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended."""

    key: Key
    id: UUID


@dataclass(frozen=True, slots=True)
class Total:
    """How many rows there are, or about how many."""

    value: int
    is_exact: bool


NEWEST = Order()

SHAPE = 'SELECT m.id, m."{sort}" AS key FROM memory m WHERE {rows} ORDER BY m."{sort}" {way}, m.id {way} LIMIT :wanted'
COUNT = "SELECT count(*) FROM (SELECT FROM memory m WHERE {rows} LIMIT :most) AS few"
ABOUT = "EXPLAIN (FORMAT JSON) SELECT FROM memory m WHERE {rows}"


async def places(
    session: Session, rows: Condition, order: Order, *, after: Place | None, limit: int
) -> Sequence[Place]:
    """At most `limit` of the rows behind `after`, in order. `rows` speaks of `memory m`."""
    values = {**rows.values, "wanted": limit}
    if after is not None:
        behind = f'(m."{order.sort}", m.id) {">" if order.ascending else "<"} (:last_key, :last_id)'
        rows, values = rows & Condition(behind), values | {"last_key": after.key, "last_id": after.id}
    found = await session.execute(_shape(rows.sql, order, after is not None), values)
    return [Place(row.key, row.id) for row in found]


async def total(session: Session, rows: Condition, *, most: int = COUNTED) -> Total:
    """How many of the rows there are: counted up to `most`, else what the planner takes for it."""
    counted = int(await session.scalar(_text(COUNT, rows.sql), {**rows.values, "most": most + 1}) or 0)
    if counted <= most:
        return Total(counted, is_exact=True)
    plan: Any = await session.scalar(_text(ABOUT, rows.sql), rows.values)
    return Total(max(counted, int(plan[0]["Plan"]["Plan Rows"])), is_exact=False)


@lru_cache(maxsize=256)
def _shape(rows: str, order: Order, behind: bool) -> TextClause:
    shape = typed(text(SHAPE.format(rows=rows, sort=order.sort, way="ASC" if order.ascending else "DESC")))
    return shape.bindparams(bindparam("last_key", type_=KEYS[order.sort])) if behind else shape


@lru_cache(maxsize=256)
def _text(shape: str, rows: str) -> TextClause:
    return typed(text(shape.format(rows=rows)))
