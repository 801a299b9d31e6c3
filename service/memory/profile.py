"""How does a user's profile change? Wholly (PUT) or in parts (PATCH); redacted like everything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from service.db.tenants import users
from service.domain.profile import Profile, Traits
from service.domain.request import WriteContext
from service.domain.revision import Expected
from service.domain.scope import Scope
from service.errors import NotFound, PreconditionFailed
from service.memory.store import write_transaction
from service.memory.transactions import keep, note
from service.pipeline import pii
from service.resources import Resources

PARTS = ("preferences", "expertise_areas", "communication_style", "metadata")


@dataclass(frozen=True, slots=True)
class ProfileOutcome:
    profile: Profile
    is_new: bool


async def put(
    workspace_id: UUID,
    user_id: str,
    traits: Traits,
    res: Resources,
    request: WriteContext,
    *,
    expected: Expected | None = None,
) -> ProfileOutcome:
    """The profile with these traits and no others. Raises PreconditionFailed or PiiRejected."""
    clean = Traits(**await _clean(asdict(traits), res))
    return await _write(workspace_id, user_id, lambda _: clean, res, request, expected, must_be_there=False)


async def patch(
    workspace_id: UUID,
    user_id: str,
    given: Mapping[str, Any],
    res: Resources,
    request: WriteContext,
    *,
    expected: Expected | None = None,
) -> ProfileOutcome:
    """The profile with the parts that are given changed: objects are merged key by key, a null in them removes the key;
    the list is replaced. Raises NotFound, PreconditionFailed or PiiRejected."""
    clean = await _clean(dict(given), res)

    def merged(old: Traits) -> Traits:
        values: dict[str, Any] = {}
        for name in PARTS:
            there, new = getattr(old, name), clean.get(name)
            if isinstance(new, dict):
                new = {key: value for key, value in {**there, **new}.items() if new.get(key, key) is not None}
            values[name] = there if new is None else new
        return Traits(**values)

    return await _write(workspace_id, user_id, merged, res, request, expected, must_be_there=True)


async def _write(
    workspace_id: UUID,
    user_id: str,
    change: Callable[[Traits], Traits],
    res: Resources,
    request: WriteContext,
    expected: Expected | None,
    *,
    must_be_there: bool,
) -> ProfileOutcome:
    scope = Scope(workspace_id, user_id)
    async with write_transaction(scope, res, request) as session:
        old = await users.profile(session, workspace_id, user_id, lock=True)
        if old is None and must_be_there:
            raise missing()
        if expected is not None and (old is None or not expected.meets(old.version)):
            raise PreconditionFailed("The profile has changed since, or is not there: read it again.", field="If-Match")
        traits = change(old.traits if old else Traits())
        found = await users.put_profile(session, workspace_id, user_id, traits, now=res.clock())
        await note(session, "update" if old else "store", scope, [], request, res, kind="profile")
        changed = ProfileOutcome(found, old is None)
        await keep(session, workspace_id, changed, request)
    return changed


async def _clean(values: dict[str, Any], res: Resources) -> dict[str, Any]:
    """Redacted part by part, so that a refusal names it."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found[name] = value if value is None else await pii.clean_json(value, name, res, key=name)
    return found


def missing() -> NotFound:
    return NotFound("There is no profile of this user.", field="user_id")
