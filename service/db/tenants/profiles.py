"""How is a user's profile kept?"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import Row, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.db.engine import Session
from service.db.tables import UserProfile as Table
from service.domain.profile import Profile, Traits

COLUMNS = tuple(Table.__table__.c)


async def get(session: Session, workspace_id: UUID, user_id: str, *, lock: bool = False) -> Profile | None:
    """The profile; with `lock` nobody else changes it before the transaction ends."""
    query = select(*COLUMNS).where(Table.workspace_id == workspace_id, Table.user_id == user_id)
    row = (await session.execute(query.with_for_update() if lock else query)).one_or_none()
    return None if row is None else _profile(row)


async def put(session: Session, workspace_id: UUID, user_id: str, traits: Traits, *, now: datetime) -> Profile:
    """The profile with these traits, made or replaced."""
    values = {
        "preferences": dict(traits.preferences),
        "expertise_areas": list(traits.expertise_areas),
        "communication_style": dict(traits.communication_style),
        "metadata": dict(traits.metadata),
        "updated_at": now,
    }
    made = upsert(Table).values(workspace_id=workspace_id, user_id=user_id, created_at=now, **values)
    made = made.on_conflict_do_update(constraint="pk_user_profile", set_={**values, "version": Table.version + 1})
    return _profile((await session.execute(made.returning(*COLUMNS))).one())


def _profile(row: Row[tuple[object, ...]]) -> Profile:
    traits = Traits(row.preferences, row.expertise_areas, row.communication_style, row.metadata)
    return Profile(row.user_id, traits, row.version, row.created_at, row.updated_at)
