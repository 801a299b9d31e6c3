"""The first workspace and a key with every right, made as the owner before the service starts."""

from __future__ import annotations

from sqlalchemy import select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool
from uuid_utils.compat import uuid7

from service.db import roles
from service.db.tables import ApiKeyRow, WorkspaceRow
from service.db.tenants import keys

FIRST_WORKSPACE = "default"


async def ensure_admin_key(owner_url: str, key: str) -> None:
    """Makes sure that `key` exists with every right and no expiry, in the oldest workspace, which is made if need be.

    Safe to run at every start and by several processes at once.
    """
    engine = create_async_engine(owner_url, poolclass=NullPool)
    try:
        async with engine.begin() as session:
            await session.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('loxodon:bootstrap', 0))"))
            await session.execute(text(f"SET LOCAL ROLE {roles.OWNER}"))
            await _ensure(session, key)
    finally:
        await engine.dispose()


async def _ensure(session: AsyncConnection, key: str) -> None:
    rights = [str(right) for right in keys.EVERY_RIGHT]
    known = await session.execute(
        update(ApiKeyRow)
        .where(ApiKeyRow.key_hash == keys.digest(key))
        .values(rights=rights, revoked_at=None, expires_at=None)
        .returning(ApiKeyRow.id)
    )
    if known.first() is not None:
        return
    workspace = await session.scalar(select(WorkspaceRow.workspace_id).order_by(WorkspaceRow.created_at).limit(1))
    if workspace is None:
        workspace = uuid7()
        await session.execute(insert(WorkspaceRow).values(workspace_id=workspace, name=FIRST_WORKSPACE))
    row = {
        "workspace_id": workspace,
        "id": uuid7(),
        "name": "first key",
        "key_hash": keys.digest(key),
        "hint": key[-4:],
        "rights": rights,
    }
    await session.execute(insert(ApiKeyRow).values(row))
