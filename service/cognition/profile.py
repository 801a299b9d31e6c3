"""Replacing (PUT) or merging (PATCH) a user's profile, with redaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from service.cognition.statements import profiles
from service.cognition.values import Profile, Traits
from service.domain.errors import NotFound, PreconditionFailed
from service.domain.request import WriteContext
from service.domain.scope import Scope
from service.domain.sizes import check_merged
from service.domain.version import Expected
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import append_audit, store_answer, write_transaction


@dataclass(frozen=True, slots=True)
class ProfileOutcome:
    profile: Profile
    is_new: bool


async def read(workspace_id: UUID, user_id: str, res: Resources) -> Profile:
    """The profile of a user. Raises NotFound if none is stored."""
    async with res.db.read(workspace_id) as session:
        profile = await profiles.find(session, workspace_id, user_id)
    if profile is None:
        raise missing()
    return profile


async def write(
    workspace_id: UUID,
    user_id: str,
    given: Mapping[str, Any],
    res: Resources,
    request: WriteContext,
    *,
    merge: bool,
    expected: Expected | None = None,
) -> ProfileOutcome:
    """Replaces the whole profile, or with `merge` changes the given parts: objects are merged key by key, where null
    removes the key; the list is replaced. Raises NotFound if there is nothing to merge with, PreconditionFailed or
    PiiRejected."""
    parts = await _clean(given, res)
    scope = Scope(workspace_id, user_id)
    async with write_transaction(scope, res, request) as session:
        old = await profiles.find(session, workspace_id, user_id, lock=True)
        if old is None and merge:
            raise missing()
        if expected is not None and (old is None or not expected.meets(old.version)):
            raise PreconditionFailed("The profile has changed since, or is not there: read it again.", field="If-Match")
        traits = _merge(old.traits, parts) if old and merge else Traits(**parts)
        profile = await profiles.put(session, workspace_id, user_id, traits, now=res.clock())
        await append_audit(session, "update" if old else "store", scope, [], request, res, kind="profile")
        outcome = ProfileOutcome(profile, old is None)
        await store_answer(session, workspace_id, outcome, request)
    return outcome


def _merge(old: Traits, parts: Mapping[str, Any]) -> Traits:
    values = asdict(old)
    for name, new in parts.items():
        if isinstance(new, dict):
            both = {**values[name], **new}
            values[name] = {key: value for key, value in both.items() if new.get(key, key) is not None}
            check_merged(name, values[name])
        elif new is not None:
            values[name] = new
    return Traits(**values)


async def _clean(values: Mapping[str, Any], res: Resources) -> dict[str, Any]:
    """Redacts each part separately, so that a refusal names the part."""
    return {
        name: value if value is None else await pii.clean_json(value, name, res, key=name)
        for name, value in values.items()
    }


def missing() -> NotFound:
    return NotFound("There is no profile of this user.", field="user_id")
