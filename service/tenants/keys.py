"""API keys of a workspace, each changed in one transaction with its audit entry, and tokens that they mint.

Changing a key needs every right that it has, because with its secret the caller could use them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from service.access.statements import keys
from service.access.token_signing import TokenSigner
from service.access.values import Issued, NewKey, defaults_of, wall_of
from service.domain.access import WHOLE_WORKSPACE, Caller, Right, Wall
from service.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from service.domain.request import Call, Operation
from service.domain.scope import Scope
from service.postgres.engine import Session
from service.runtime.background import ReadLog
from service.runtime.resources import Resources
from service.runtime.statements.audit import AuditEntry
from service.runtime.transactions import Write, plain_transaction

NOT_FOR_TOKENS = WHOLE_WORKSPACE | {Right.TOKENS}
WALL = ("user_id", "agent_id", "run_id", "channels")


async def create(new: NewKey, caller: Caller, res: Resources, call: Call) -> Issued:
    """Issues a key. Raises Forbidden for a right that the caller lacks, InvalidInput for an invalid expiry or
    defaults."""
    _check(new, caller)
    _check_expiry(new.expires_at, res)
    async with plain_transaction(caller.workspace_id, res, call) as write:
        issued = await keys.issue(write.session, new)
        info = await _get(write.session, issued.key_id)
        await _audit(write, "create_api_key", info)
        return issued


async def list_all(caller: Caller, res: Resources) -> Sequence[Row[Any]]:
    async with res.db.read(caller.workspace_id) as session:
        return await keys.listing(session)


async def read(key_id: UUID, caller: Caller, res: Resources) -> Row[Any]:
    """A key. Raises NotFound, as all functions here do that take an id."""
    async with res.db.read(caller.workspace_id) as session:
        return await _get(session, key_id)


async def change(key_id: UUID, given: Mapping[str, Any], caller: Caller, res: Resources, call: Call) -> Row[Any]:
    """Changes the given fields: name, rights, defaults, expires_at, and a tighter wall. Raises Forbidden, Conflict or
    InvalidInput."""
    _check_expiry(given.get("expires_at"), res)
    async with plain_transaction(caller.workspace_id, res, call) as write:
        before = await _changeable(write.session, caller, key_id)
        new = NewKey(
            given.get("name") or before.name,
            [Right(right) for right in dict.fromkeys(given.get("rights") or before.rights)],
            _narrow(wall_of(before), given),
            given.get("defaults") or defaults_of(before),
            given.get("expires_at", before.expires_at),
        )
        _check(new, caller)
        await keys.change(write.session, key_id, new)
        after = await _get(write.session, key_id)
        await _audit(write, "update_api_key", after, fields=sorted(given))
        return after


async def rotate(key_id: UUID, overlap_s: int, caller: Caller, res: Resources, call: Call) -> tuple[str, datetime]:
    """The new secret, and until when the old one is valid."""
    until = res.clock() + timedelta(seconds=overlap_s)
    async with plain_transaction(caller.workspace_id, res, call) as write:
        before = await _changeable(write.session, caller, key_id)
        secret = await keys.rotate(write.session, key_id, until if overlap_s else None)
        await _audit(write, "rotate_api_key", before, overlap_s=overlap_s)
        return secret, until


async def revoke(key_id: UUID, caller: Caller, res: Resources, call: Call) -> None:
    """Repeating it changes nothing."""
    async with plain_transaction(caller.workspace_id, res, call) as write:
        key = await _get(write.session, key_id)
        if key.revoked_at is None:
            await keys.revoke(write.session, key_id)
            await _audit(write, "revoke_api_key", key)


async def mint(
    wall: Wall,
    rights: Sequence[Right],
    expires_in_s: int,
    caller: Caller,
    res: Resources,
    call: Call,
    *,
    signer: TokenSigner,
    log: ReadLog,
) -> tuple[str, datetime]:
    """Returns a token, and when it expires. Raises InvalidInput, or Forbidden for rights that the caller's key cannot
    give."""
    for right in rights:
        if right in NOT_FOR_TOKENS:
            raise InvalidInput(f"rights: a token cannot have {right}.", field="rights")
        caller.check_right(right)
    caller.check_wall(wall)
    both = wall & caller.wall
    if not both:
        raise InvalidInput("user_id: a token requires user_id, agent_id, run_id or channels.", field="user_id")
    expires_at = (res.clock() + timedelta(seconds=expires_in_s)).replace(microsecond=0)
    token = await signer.mint(caller, both, rights, expires_at)
    if res.settings.history.audit_level != "off":
        entry = AuditEntry(
            operation="create_token",
            memory_type="api_key",
            scope=Scope(caller.workspace_id, both.user_id, both.agent_id, both.run_id),
            affected_ids=(caller.key_id,),
            request_id=call.request_id,
            api_key_id=caller.key_id,
            session_id=call.session_id,
            metadata={"rights": [str(right) for right in rights], "expires_in_s": expires_in_s},
        )
        log.add(entry)  # in the background, so that minting does not wait for a write
    return token, expires_at


async def _get(session: Session, key_id: UUID) -> Row[Any]:
    key = await keys.get(session, key_id)
    if key is None:
        raise NotFound.of("key")
    return key


async def _changeable(session: Session, caller: Caller, key_id: UUID) -> Row[Any]:
    """The key; raises Conflict if it is revoked, Forbidden if it has more rights than the caller."""
    key = await _get(session, key_id)
    if key.revoked_at is not None:
        raise Conflict("The key is revoked.", field="id")
    for right in keys.rights_of(key.rights):
        if not caller.may(right):
            raise Forbidden(f"That key has the right {right}, which this key lacks.", field="id")
    return key


def _check(new: NewKey, caller: Caller) -> None:
    """Raises Forbidden for a right that the caller cannot give, InvalidInput if defaults are outside the wall, or a
    walled key would have a right over the workspace."""
    for right in new.rights:
        caller.check_right(right)
    for name in new.defaults.leaves(new.wall):
        raise InvalidInput(f"defaults.{name}: is outside what the key can access.", field=f"defaults.{name}")
    unrestricted = sorted(WHOLE_WORKSPACE.intersection(new.rights))
    if new.wall and unrestricted:
        detail = f"rights: {unrestricted[0]} covers the whole workspace, which a restricted key cannot access."
        raise InvalidInput(detail, field="rights")


def _check_expiry(expires_at: datetime | None, res: Resources) -> None:
    if expires_at is not None and expires_at <= res.clock():
        raise InvalidInput("expires_at: must not be in the past.", field="expires_at")


def _narrow(wall: Wall, given: Mapping[str, Any]) -> Wall:
    """The wall with the given fields; raises Forbidden if it would be wider."""
    after = Wall(**{name: given[name] if name in given else getattr(wall, name) for name in WALL})
    for name in after.leaves(wall):
        raise Forbidden(f"{name}: the restrictions of a key can only be tightened; create a new key.", field=name)
    return after


async def _audit(write: Write, operation: Operation, key: Row[Any], **more: Any) -> None:
    """Records which key was changed, and its rights. Names and ids are left out, because an erasure would not find them
    here."""
    walled = [name for name in WALL if getattr(key, name)]
    about = {"rights": list(key.rights), "walled": walled, **more}
    await write.audit(operation, Scope(write.session.workspace_id), [key.id], subject="api_key", **about)
