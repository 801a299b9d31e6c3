"""Which memories of a scope bear a tag?

Array operators cannot use a GIN index under the policy (A2), so the scope's btree cuts the rows and tags filter them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import select

from service.db import scopes, visible
from service.db.engine import Session
from service.db.tables import Memory as Table
from service.domain.scope import Scope

Match = Literal["prefix", "exact"]
Mode = Literal["any", "all"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Normalised tags. `prefix` finds slack:channel by slack, and by itself; `all` wants every one of them (C40)."""

    tags: tuple[str, ...]
    match: Match = "prefix"
    mode: Mode = "any"


async def find(
    session: Session, scope: Scope, wanted: Wanted, *, limit: int, now: datetime, include_archived: bool = False
) -> Sequence[UUID]:
    """The ids of at most `limit` memories, the most important first, then the latest (R6.18)."""
    column = Table.tag_prefixes if wanted.match == "prefix" else Table.tags
    tags = list(wanted.tags)
    bears = column.contains(tags) if wanted.mode == "all" else column.overlap(tags)
    here = scopes.matching("memory", scope) & visible.alive("memory", now)
    query = select(Table.id).where(here.clause, bears)
    if not include_archived:
        query = query.where(~Table.archived)
    order = (Table.importance.desc(), Table.timestamp.desc(), Table.id)
    return (await session.scalars(query.order_by(*order).limit(limit))).all()
