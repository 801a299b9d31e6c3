"""Routes for API keys (whoami, create, change, rotate, revoke) and for tokens, which a server with a key mints for a
browser or an agent that calls directly.

A change of a key and its audit entry are one transaction. Other processes notice a change within seconds
(key_ring.REMEMBERED_S).
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from service.access.values import NewKey
from service.domain.access import Caller, Right
from service.http import errors
from service.http.deps import Admin, CallerOf, ResourcesOf, needs
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.writes import UnkeyedCallOf
from service.tenants import keys
from service.tenants.routes.api_key_models import (
    ApiKeyItem,
    ApiKeysResponse,
    CreateApiKeyRequest,
    CreateApiKeyResponse,
    CreateTokenRequest,
    CreateTokenResponse,
    RotateApiKeyRequest,
    RotateApiKeyResponse,
    UpdateApiKeyRequest,
    WhoAmIResponse,
)

router = APIRouter(prefix="/v1", tags=["API keys"], route_class=JsonRoute)

Minter = Annotated[Caller, Depends(needs(Right.TOKENS))]


@router.get("/whoami", summary="Get the key or token of this request")
async def whoami(caller: CallerOf) -> WhoAmIResponse:
    """Returns the workspace, rights, restrictions and default scope of the key."""
    return WhoAmIResponse.describing(caller)


@router.post("/api-keys", summary="Create an API key", status_code=201)
async def create_api_key(
    body: CreateApiKeyRequest, caller: Admin, res: ResourcesOf, call: UnkeyedCallOf
) -> CreateApiKeyResponse:
    """Only this response shows the secret. A key cannot grant a right that it does not have. `user_id`, `agent_id`,
    `run_id` and `channels` restrict the key: data outside of them does not exist for it."""
    rights = [Right(right) for right in dict.fromkeys(body.rights)]
    new = NewKey(body.name, rights, body.wall, body.defaults.value(), body.expires_at)
    issued = await keys.create(new, caller, res, call)
    return CreateApiKeyResponse(id=issued.key_id, api_key=issued.secret)


@router.get("/api-keys", summary="List the API keys of the workspace")
async def list_api_keys(caller: Admin, res: ResourcesOf) -> ApiKeysResponse:
    """Revoked keys included; without secrets."""
    return ApiKeysResponse(results=[ApiKeyItem.describing(info) for info in await keys.list_all(caller, res)])


@router.get("/api-keys/{id}", summary="Get an API key")
async def get_api_key(id: str, caller: Admin, res: ResourcesOf) -> ApiKeyItem:
    """The key is returned without its secret."""
    return ApiKeyItem.describing(await keys.read(uuid_of(id, "key"), caller, res))


@router.patch("/api-keys/{id}", summary="Change an API key", responses=errors.document(409))
async def update_api_key(
    id: str, body: UpdateApiKeyRequest, caller: Admin, res: ResourcesOf, request: Request, call: UnkeyedCallOf
) -> ApiKeyItem:
    """Changes name, rights, expiry or defaults, or tightens restrictions. The caller needs every right of that key."""
    given = {name: getattr(body, name) for name in body.model_fields_set}
    given |= {"channels": body.wall.channels} if "channels" in given else {}
    given |= {"defaults": body.defaults.value()} if body.defaults is not None else {}
    after = await keys.change(uuid_of(id, "key"), given, caller, res, call)
    request.app.state.keys.forget()
    return ApiKeyItem.describing(after)


@router.post("/api-keys/{id}/rotate", summary="Rotate the secret of an API key", responses=errors.document(409))
async def rotate_api_key(
    id: str, body: RotateApiKeyRequest, caller: Admin, res: ResourcesOf, request: Request, call: UnkeyedCallOf
) -> RotateApiKeyResponse:
    """The new secret works at once, the old one for `overlap_s` more seconds; one from an earlier rotation expires now.
    Rights, restrictions, expiry and id stay. The caller needs every right of that key."""
    wanted = uuid_of(id, "key")
    secret, until = await keys.rotate(wanted, body.overlap_s, caller, res, call)
    request.app.state.keys.forget()
    return RotateApiKeyResponse(id=wanted, api_key=secret, old_secret_until=until)


@router.delete("/api-keys/{id}", summary="Revoke an API key", status_code=204)
async def revoke_api_key(id: str, caller: Admin, res: ResourcesOf, request: Request, call: UnkeyedCallOf) -> None:
    """Also revokes its tokens. Takes effect at once in this process, within five seconds in others. Repeating it
    changes nothing."""
    await keys.revoke(uuid_of(id, "key"), caller, res, call)
    request.app.state.keys.forget()


@router.post("/tokens", summary="Mint a token for one end user", status_code=201)
async def create_token(
    body: CreateTokenRequest, caller: Minter, res: ResourcesOf, request: Request, call: UnkeyedCallOf
) -> CreateTokenResponse:
    """The restrictions of the key apply in addition to its own, and it expires with the key."""
    rights = [Right(right) for right in dict.fromkeys(body.rights)]
    token, expires_at = await keys.mint(
        *(body.wall, rights, body.expires_in_s, caller, res, call),
        signer=request.app.state.tokens,
        log=request.app.state.reads,
    )
    return CreateTokenResponse(token=token, expires_at=expires_at)
