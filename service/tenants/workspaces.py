"""A workspace, its settings, its audit log, and its users, agents, runs and channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from service.access.statements import keys, users
from service.access.values import Issued, OwnerKind
from service.domain.access import Caller, Right
from service.domain.scope import Scope
from service.kit.settings import GRANTED, LIMITS
from service.runtime.resources import Resources
from service.runtime.statements import audit


async def create(name: str, res: Resources) -> Issued:
    """The first key has every right in the new workspace, but not those over the whole service."""
    return await keys.create_workspace(res.db, name, rights=keys.EVERY_RIGHT_IN_WORKSPACE)


async def read(workspace_id: UUID, res: Resources) -> Row[Any]:
    async with res.db.read(workspace_id) as session:
        return await keys.workspace(session)


async def change(caller: Caller, name: str | None, settings: dict[str, Any] | None, res: Resources) -> Row[Any]:
    """Renames it, or replaces its settings, which were checked. Limits granted by an operator stay, unless an operator
    sets them."""
    async with res.db.begin(caller.workspace_id) as session:
        if settings is not None:
            granted = (await keys.workspace(session)).settings.get(GRANTED)
            if caller.may(Right.OPERATOR):
                granted = {name: settings[name] for name in settings if name in LIMITS}
            settings = {**settings, GRANTED: granted} if granted else settings
        await keys.change_workspace(session, name=name, settings=settings)
        return await keys.workspace(session)


async def list_owners(
    workspace_id: UUID, kinds: Sequence[OwnerKind], res: Resources, *, after: str | None, limit: int
) -> list[Row[Any]]:
    """Users, agents and runs with memories, kind by kind and by name, starting after `after`."""
    usages: list[Row[Any]] = []
    async with res.db.snapshot(workspace_id) as session:
        for kind in kinds:
            if len(usages) < limit:
                room = limit - len(usages)
                usages += await users.owners(session, kind, after=after, limit=room, now=res.clock())
            after = None
    return usages


async def list_channels(scope: Scope, res: Resources, *, after: str | None, limit: int) -> Sequence[Row[Any]]:
    """Channels by name, of the given user, agent and run (none: of the whole workspace)."""
    async with res.db.read(scope.workspace_id) as session:
        return await users.channels(session, scope, after=after, limit=limit, now=res.clock())


async def list_audit(
    workspace_id: UUID,
    equal: Mapping[str, object],
    res: Resources,
    *,
    after: tuple[datetime, UUID] | None,
    limit: int,
    **more: Any,
) -> list[dict[str, Any]]:
    """Entries of the audit log, newest first; for the conditions see audit.page."""
    async with res.db.read(workspace_id) as session:
        return await audit.page(session, equal, after=after, limit=limit, **more)
