"""Profiles of users: reading and replacing them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects import postgresql

from service.cognition.values import ProfileResponse
from service.postgres.engine import Session
from service.postgres.tables import USER_PROFILE


async def find(session: Session, user_id: str, *, lock: bool = False) -> ProfileResponse | None:
    """A user's profile; `lock`: locked against changes until the transaction ends."""
    query = select(*USER_PROFILE.c).where(
        USER_PROFILE.c.workspace_id == session.workspace_id, USER_PROFILE.c.user_id == user_id
    )
    row = (await session.execute(query.with_for_update() if lock else query)).one_or_none()
    return None if row is None else ProfileResponse.of(row)


async def put(session: Session, user_id: str, parts: Mapping[str, Any], *, now: datetime) -> ProfileResponse:
    """Creates or replaces a profile."""
    values = {**parts, "updated_at": now}
    new = postgresql.insert(USER_PROFILE).values(
        workspace_id=session.workspace_id, user_id=user_id, created_at=now, **values
    )
    new = new.on_conflict_do_update(
        constraint="pk_user_profile", set_={**values, "version": USER_PROFILE.c.version + 1}
    )
    return ProfileResponse.of((await session.execute(new.returning(*USER_PROFILE.c))).one())
