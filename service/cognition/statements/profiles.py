"""Profiles of users: reading and replacing them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Row, select
from sqlalchemy.dialects import postgresql

from service.cognition.values import Profile, Traits
from service.postgres.engine import Session
from service.postgres.tables import USER_PROFILE

PROFILE_COLUMNS = tuple(USER_PROFILE.c)


async def find(session: Session, user_id: str, *, lock: bool = False) -> Profile | None:
    """A user's profile; `lock`: locked against changes until the transaction ends."""
    query = select(*PROFILE_COLUMNS).where(
        USER_PROFILE.c.workspace_id == session.workspace_id, USER_PROFILE.c.user_id == user_id
    )
    row = (await session.execute(query.with_for_update() if lock else query)).one_or_none()
    return None if row is None else _profile(row)


async def put(session: Session, user_id: str, traits: Traits, *, now: datetime) -> Profile:
    """Creates or replaces a profile."""
    values = {
        "preferences": dict(traits.preferences),
        "expertise_areas": list(traits.expertise_areas),
        "communication_style": dict(traits.communication_style),
        "metadata": dict(traits.metadata),
        "updated_at": now,
    }
    made = postgresql.insert(USER_PROFILE).values(
        workspace_id=session.workspace_id, user_id=user_id, created_at=now, **values
    )
    made = made.on_conflict_do_update(
        constraint="pk_user_profile", set_={**values, "version": USER_PROFILE.c.version + 1}
    )
    return _profile((await session.execute(made.returning(*PROFILE_COLUMNS))).one())


def _profile(row: Row[tuple[object, ...]]) -> Profile:
    traits = Traits(row.preferences, row.expertise_areas, row.communication_style, row.metadata)
    return Profile(row.user_id, traits, row.version, row.created_at, row.updated_at)
