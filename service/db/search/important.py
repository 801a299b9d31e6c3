"""Which memories matter most, among those that a caller narrowed a scope down to?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from uuid import UUID

from sqlalchemy import TextClause, text

from service.db.conditions import Condition, typed
from service.db.engine import Session

# The btree on the scope cuts; the rest is a filter and a sort of what is left.
SHAPE = """
SELECT m.id FROM memory m WHERE {rows} ORDER BY m.importance DESC, m."timestamp" DESC, m.id LIMIT :wanted
"""


async def ids(session: Session, rows: Condition, *, limit: int) -> Sequence[UUID]:
    """At most `limit` of the rows, the most important first, then the latest (R6.18). `rows` speaks of `memory m`."""
    return (await session.scalars(_shape(rows.sql), {**rows.values, "wanted": limit})).all()


@lru_cache(maxsize=256)
def _shape(rows: str) -> TextClause:
    return typed(text(SHAPE.format(rows=rows)))
