"""API keys over HTTP: whoami, making, changing, rotating and revoking them.

A change of a key and its audit entry are one transaction. Other processes notice a change within seconds
(deps.REMEMBERED_S).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request

from service.access.statements import keys
from service.access.statements.keys import KeyInfo
from service.domain.access import WHOLE_WORKSPACE, Caller, Defaults, Right, Wall
from service.domain.audit import Operation
from service.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from service.domain.request import WriteContext
from service.domain.scope import Scope
from service.http import errors
from service.http.deps import Admin, CallerOf, ResourcesOf, session_of
from service.http.json_body import JsonRoute
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.transactions import append_audit
from service.tenants.routes.api_key_models import (
    ApiKeyItem,
    ApiKeysResponse,
    CreateApiKeyRequest,
    CreateApiKeyResponse,
    RotateApiKeyRequest,
    RotateApiKeyResponse,
    UpdateApiKeyRequest,
    WhoAmIResponse,
)

router = APIRouter(prefix="/v1", tags=["API keys"], route_class=JsonRoute)


@router.get("/whoami", summary="The key or token of this request", responses=errors.documented(401, 503))
async def whoami(caller: CallerOf) -> WhoAmIResponse:
    """Its workspace, its rights, the wall that it cannot leave, and the default scope of its requests."""
    return WhoAmIResponse.describing(caller)


@router.post("/api-keys", summary="Create an API key", status_code=201, responses=errors.documented(400, 401, 403, 503))
async def create_api_key(
    body: CreateApiKeyRequest, caller: Admin, res: ResourcesOf, request: Request
) -> CreateApiKeyResponse:
    """Only this answer shows the secret. A key cannot give a right that it does not have. `user_id`, `agent_id`,
    `run_id` and `channels` are a wall: whatever the key asks for, nothing outside is there for it."""
    rights = [Right(right) for right in dict.fromkeys(body.rights)]
    _may_give(caller, rights)
    _check_expiry(body.expires_at, res)
    _check_scope(body.wall, body.defaults.value(), rights)
    new = keys.NewKey(body.name, rights, body.wall, body.defaults.value(), body.expires_at)
    async with res.db.begin(caller.workspace_id) as session:
        issued = await keys.issue(session, caller.workspace_id, new)
        info = await keys.get(session, caller.workspace_id, issued.key_id)
        assert info is not None, "it was just made"
        await _audit(session, "create_api_key", info, caller, res, request)
    return CreateApiKeyResponse(id=issued.key_id, api_key=issued.secret)


@router.get("/api-keys", summary="The workspace's keys", responses=errors.documented(401, 403, 503))
async def list_api_keys(caller: Admin, res: ResourcesOf) -> ApiKeysResponse:
    """Without their secrets, revoked keys included."""
    async with res.db.read(caller.workspace_id) as session:
        found = await keys.listing(session, caller.workspace_id)
    return ApiKeysResponse(results=[ApiKeyItem.describing(each) for each in found])


@router.get("/api-keys/{id}", summary="An API key", responses=errors.documented(401, 403, 404, 503))
async def get_api_key(id: str, caller: Admin, res: ResourcesOf) -> ApiKeyItem:
    """Without its secret."""
    async with res.db.read(caller.workspace_id) as session:
        return ApiKeyItem.describing(await _found(session, caller, id))


@router.patch("/api-keys/{id}", summary="Change an API key", responses=errors.documented(400, 401, 403, 404, 409, 503))
async def update_api_key(
    id: str, body: UpdateApiKeyRequest, caller: Admin, res: ResourcesOf, request: Request
) -> ApiKeyItem:
    """Name, rights, expiry, defaults, and a tighter wall. Only a key with every right of that key may change it."""
    _check_expiry(body.expires_at, res)
    async with res.db.begin(caller.workspace_id) as session:
        before = await _changeable(session, caller, id)
        rights = [Right(right) for right in dict.fromkeys(body.rights or before.rights)]
        _may_give(caller, rights)
        wall = _narrowed(before.wall, body)
        defaults = body.defaults.value() if body.defaults is not None else before.defaults
        _check_scope(wall, defaults, rights)
        expires_at = body.expires_at if "expires_at" in body.model_fields_set else before.expires_at
        new = keys.NewKey(body.name or before.name, rights, wall, defaults, expires_at)
        await keys.change(session, caller.workspace_id, before.id, new)
        after = await _found(session, caller, id)
        await _audit(session, "update_api_key", after, caller, res, request, fields=sorted(body.model_fields_set))
    request.app.state.keys.forget()
    return ApiKeyItem.describing(after)


@router.post(
    "/api-keys/{id}/rotate",
    summary="Give an API key a new secret",
    responses=errors.documented(400, 401, 403, 404, 409, 503),
)
async def rotate_api_key(
    id: str, body: RotateApiKeyRequest, caller: Admin, res: ResourcesOf, request: Request
) -> RotateApiKeyResponse:
    """The new secret works at once, the old one for `overlap_s` seconds more; one that a former rotation left valid
    ends now. Rights, wall, expiry and id stay. Only a key with every right of that key may rotate it."""
    until = res.clock() + timedelta(seconds=body.overlap_s)
    async with res.db.begin(caller.workspace_id) as session:
        before = await _changeable(session, caller, id)
        secret = await keys.rotate(session, caller.workspace_id, before.id, until if body.overlap_s else None)
        await _audit(session, "rotate_api_key", before, caller, res, request, overlap_s=body.overlap_s)
    request.app.state.keys.forget()
    return RotateApiKeyResponse(id=before.id, api_key=secret, old_secret_until=until)


@router.delete(
    "/api-keys/{id}", summary="Revoke an API key", status_code=204, responses=errors.documented(401, 403, 404, 503)
)
async def revoke_api_key(id: str, caller: Admin, res: ResourcesOf, request: Request) -> None:
    """With the tokens that it minted: at once in this process, within five seconds in the others. Repeating it changes
    nothing."""
    async with res.db.begin(caller.workspace_id) as session:
        key = await _found(session, caller, id)
        if key.revoked_at is None:
            await keys.revoke(session, caller.workspace_id, key.id)
            await _audit(session, "revoke_api_key", key, caller, res, request)
    request.app.state.keys.forget()


async def _found(session: Session, caller: Caller, id: str) -> KeyInfo:
    try:
        found = await keys.get(session, caller.workspace_id, UUID(id))
    except ValueError:
        found = None
    if found is None:
        raise NotFound("There is no key with this id.", field="id")
    return found


async def _changeable(session: Session, caller: Caller, id: str) -> KeyInfo:
    """The key; raises Conflict for one that is revoked, Forbidden for one that may do more than the caller: with its
    secret the caller could."""
    found = await _found(session, caller, id)
    if found.revoked_at is not None:
        raise Conflict("The key is revoked.", field="id")
    for right in keys.rights_of(found.rights):
        if not caller.may(right):
            raise Forbidden(f"That key has the right {right}, which this one does not hold.", field="id")
    return found


def _may_give(caller: Caller, rights: Iterable[Right]) -> None:
    for right in rights:
        caller.check_right(right)


def _check_expiry(expires_at: Any, res: Resources) -> None:
    if expires_at is not None and expires_at <= res.clock():
        raise InvalidInput("expires_at: lies in the past.", field="expires_at")


def _check_scope(wall: Wall, defaults: Defaults, rights: Sequence[Right]) -> None:
    """Raises InvalidInput where defaults leave the wall, or a walled key would have a right over the workspace."""
    for name in defaults.leaves(wall):
        raise InvalidInput(f"defaults.{name}: lies outside what the key reaches.", field=f"defaults.{name}")
    whole = sorted(WHOLE_WORKSPACE.intersection(rights))
    if wall and whole:
        detail = f"rights: {whole[0]} is about the whole workspace, and this key does not reach all of it."
        raise InvalidInput(detail, field="rights")


def _narrowed(wall: Wall, body: UpdateApiKeyRequest) -> Wall:
    """The wall after the request; raises Forbidden where it would be wider."""
    given = {name: getattr(body.wall, name) for name in ("user_id", "agent_id", "run_id", "channels")}
    own = {name: getattr(wall, name) for name in given}
    after = Wall(**{name: given[name] if name in body.model_fields_set else own[name] for name in given})
    for name in after.leaves(wall):
        raise Forbidden(f"{name}: the wall of a key can only be drawn tighter; make a new key.", field=name)
    return after


async def _audit(
    session: Session,
    operation: Operation,
    key: KeyInfo,
    caller: Caller,
    res: Resources,
    request: Request,
    **more: Any,
) -> None:
    """Who did it (the caller's key), to which key, and what that key may do. Names and ids stay out: an erasure would
    not find them here."""
    context = WriteContext(request.state.request_id, caller.key_id, session_id=session_of(request))
    details = {
        "rights": list(key.rights),
        "walled": [name for name in ("user_id", "agent_id", "run_id", "channels") if getattr(key, name)],
        **more,
    }
    await append_audit(
        session, operation, Scope(caller.workspace_id), [key.id], context, res, kind="api_key", **details
    )
