"""Reading and replacing a user's profile, with redaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from service.cognition.statements import profiles
from service.cognition.values import ProfileResponse
from service.domain.errors import NotFound
from service.domain.request import Call
from service.domain.scope import Scope
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import write_transaction


async def read(workspace_id: UUID, user_id: str, res: Resources) -> ProfileResponse:
    """The profile of a user. Raises NotFound if none is stored."""
    async with res.db.read(workspace_id) as session:
        profile = await profiles.find(session, user_id)
    if profile is None:
        raise NotFound("There is no profile of this user.", field="user_id")
    return profile


async def replace(
    workspace_id: UUID, user_id: str, fields: Mapping[str, Any], res: Resources, call: Call
) -> tuple[ProfileResponse, bool]:
    """Replaces the whole profile; returns it, and whether it is new. Raises PreconditionFailed or PiiRejected."""
    # each part separately, so that a refusal names the part
    parts = {name: await pii.clean_json(value, name, res, key=name) for name, value in fields.items()}
    scope = Scope(workspace_id, user_id)
    async with write_transaction(scope, res, call) as write:
        old = await profiles.find(write.session, user_id, lock=True)
        write.check_version(old.version if old else None, "profile")
        profile = await profiles.put(write.session, user_id, parts, now=res.clock())
        await write.audit("update" if old else "store", scope, [], subject="profile")
        return await write.answer((profile, old is None))
