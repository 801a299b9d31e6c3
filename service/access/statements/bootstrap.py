"""The first workspace and a key with every right, created by the owner before the service starts."""

from __future__ import annotations

from enum import Enum

from sqlalchemy import or_, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool
from uuid_utils.compat import uuid7

from service.access.statements import keys
from service.postgres import roles
from service.postgres.tables import API_KEY, WORKSPACE

FIRST_WORKSPACE = "default"


class FirstKey(Enum):
    """The outcome for the first key."""

    MADE = "made"
    KNOWN = "known"
    REVOKED = "revoked"


async def ensure_admin_key(owner_url: str, key: str) -> FirstKey:
    """Creates `key` with every right in the oldest workspace, which is created if needed. If the database has seen the
    key before, nothing changes: one that was revoked or given fewer rights stays so.

    Safe to run at every start and by several processes at once.
    """
    engine = create_async_engine(owner_url, poolclass=NullPool)
    try:
        async with engine.begin() as session:
            await session.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('loxodon:bootstrap', 0))"))
            await session.execute(text(f"SET LOCAL ROLE {roles.OWNER}"))
            return await _ensure(session, key)
    finally:
        await engine.dispose()


async def _ensure(session: AsyncConnection, key: str) -> FirstKey:
    digest = keys.digest(key)
    seen = or_(API_KEY.c.key_hash == digest, API_KEY.c.former_key_hashes.contains([digest]))
    known = await session.execute(select(API_KEY.c.revoked_at).where(seen))
    if (row := known.first()) is not None:
        return FirstKey.KNOWN if row.revoked_at is None else FirstKey.REVOKED
    workspace = await session.scalar(select(WORKSPACE.c.workspace_id).order_by(WORKSPACE.c.created_at).limit(1))
    if workspace is None:
        workspace = uuid7()
        await session.execute(insert(WORKSPACE).values(workspace_id=workspace, name=FIRST_WORKSPACE))
    first = {
        "workspace_id": workspace,
        "id": uuid7(),
        "name": "first key",
        "key_hash": keys.digest(key),
        "hint": key[-4:],
        "rights": [str(right) for right in keys.EVERY_RIGHT],
    }
    await session.execute(insert(API_KEY).values(first))
    return FirstKey.MADE
