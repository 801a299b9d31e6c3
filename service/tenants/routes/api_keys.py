"""Routes for API keys (whoami, create, change, rotate, revoke) and for tokens, which a server with a key mints for a
browser or an agent that calls directly.

A change of a key and its audit entry are one transaction. Other processes notice a change within seconds
(key_ring.REMEMBERED_S).
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import APIRouter, Depends, Request
from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema
from sqlalchemy import Row

from service.access.values import NewKey, defaults_of
from service.domain.access import Caller, Defaults, Right, Wall
from service.http import errors
from service.http.deps import Admin, CallerOf, ResourcesOf, needs
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.schemas import Channel, Id, Name, OnePage, RequestModel, ResponseModel, Time, Title, example
from service.http.writes import UnkeyedCallOf
from service.tenants import keys

RIGHTS = ", ".join(sorted(Right))
MAX_CHANNELS = 100


def _right(name: str) -> str:
    if name not in set(Right):
        raise ValueError(f"must be one of {RIGHTS}")
    return name


RightName = Annotated[
    str,
    AfterValidator(_right),
    WithJsonSchema({"type": "string", "enum": sorted(str(right) for right in Right), "examples": ["memory:read"]}),
]
Rights = Annotated[
    list[RightName],
    Field(
        min_length=1, max_length=len(Right), examples=[["memory:read", "memory:write"]], description="Rights of the key"
    ),
]
Channels = Annotated[list[Channel], Field(min_length=1, max_length=MAX_CHANNELS, examples=[["support", "_global"]])]


class ScopeDefaults(RequestModel):
    """The scope of requests that give none. It does not restrict access."""

    user_id: Name | None = Field(None, description="User of requests without an id")
    agent_id: Name | None = Field(None, description="Agent of requests without an id")
    run_id: Name | None = Field(None, description="Run of requests without an id")
    channel: Channel | None = Field(None, description="Channel of requests without one")

    def value(self) -> Defaults:
        return Defaults(self.user_id, self.agent_id, self.run_id, self.channel)


class WallFields(RequestModel):
    """The scope it is restricted to: data of other users, agents, runs or channels does not exist for it."""

    user_id: Name | None = Field(None, description="The only user whose data it can access; default: every user")
    agent_id: Name | None = Field(None, description="The only agent whose data it can access; default: every agent")
    run_id: Name | None = Field(None, description="The only run whose data it can access; default: every run")
    channels: Channels | None = Field(None, description="The channels it can access; default: every channel")

    @property
    def wall(self) -> Wall:
        return Wall(self.user_id, self.agent_id, self.run_id, tuple(dict.fromkeys(self.channels or ())))


class CreateApiKeyRequest(WallFields):
    """Rights, restrictions, expiry and default scope of a key."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "checkout agent", "rights": ["memory:read", "memory:write"]},
                {"name": "alice's phone", "rights": ["memory:read", "memory:write"], "user_id": "alice"},
            ]
        }
    )

    name: Title = Field(examples=["checkout agent"], description="Name, for people")
    rights: Rights
    defaults: ScopeDefaults = Field(
        ScopeDefaults.model_construct(), description="Default scope of its requests; within its restrictions"
    )
    expires_at: Time | None = Field(None, description="When it expires; default: never")


class UpdateApiKeyRequest(WallFields):
    """Only the given fields change. Restrictions can be tightened, not relaxed: create a new key for that."""

    model_config = example(rights=["memory:read"])

    name: Title | None = Field(None, description="Name, for people")
    rights: Rights | None = Field(None, description="Replaces its rights")
    defaults: ScopeDefaults | None = Field(None, description="Replaces the default scope of its requests")
    expires_at: Time | None = Field(None, description="When it expires; null: never")


class RotateApiKeyRequest(RequestModel):
    """How long the old secret stays valid along with the new one."""

    model_config = example(overlap_s=3600)

    overlap_s: int = Field(
        0,
        ge=0,
        le=2_592_000,
        description="Seconds, at most 30 days; 0: the old secret expires at once",
        examples=[3600],
    )


class ScopeDefaultsResponse(ResponseModel):
    """The scope of requests that give none."""

    user_id: str | None = Field(description="User of requests without an id; null: none")
    agent_id: str | None = Field(description="Agent of requests without an id; null: none")
    run_id: str | None = Field(description="Run of requests without an id; null: none")
    channel: str | None = Field(
        description="Channel of requests without one; null: `_global`, or the first of its channels"
    )


class KeyScope(ResponseModel):
    """The rights, the restrictions and the default scope of a key."""

    rights: list[str] = Field(description="Rights of the key")
    user_id: str | None = Field(description="The only user it can access; null: every user")
    agent_id: str | None = Field(description="The only agent it can access; null: every agent")
    run_id: str | None = Field(description="The only run it can access; null: every run")
    channels: list[str] | None = Field(description="The channels it can access; null: every channel")
    defaults: ScopeDefaultsResponse
    expires_at: Time | None = Field(description="When it expires; null: never")


class ApiKeyItem(KeyScope):
    """A key without its secret."""

    id: Id = Field(description="UUID")
    name: str = Field(description="Name, for people")
    hint: str = Field(description="The last four characters of the secret")
    created_at: Time = Field(description="When it was created")
    revoked_at: Time | None = Field(description="When it was revoked; null: not revoked")
    last_used_at: Time | None = Field(description="When it was last used, to about a minute; null: not yet")
    old_secret_until: Time | None = Field(description="Until when the previous secret is valid; null: not valid")

    @classmethod
    def describing(cls, key: Row[Any]) -> Self:
        return cls.of(
            key,
            rights=list(key.rights),
            channels=list(key.channels) or None,
            defaults=ScopeDefaultsResponse.of(defaults_of(key)),
            old_secret_until=key.old_key_until,
        )


class CreateApiKeyResponse(ResponseModel):
    """The new key. The secret is shown only once; the service stores its hash."""

    id: Id = Field(description="UUID of the key")
    api_key: str = Field(description="The secret; it cannot be shown again")


class RotateApiKeyResponse(ResponseModel):
    """The new secret is shown only once."""

    id: Id = Field(description="UUID of the key, unchanged")
    api_key: str = Field(description="The new secret; it cannot be shown again")
    old_secret_until: Time = Field(description="Until when the old secret is also valid")


class ApiKeysResponse(ResponseModel):
    """All keys of the workspace, without secrets."""

    results: list[ApiKeyItem] = Field(description="Keys, including revoked and expired ones")
    next_cursor: OnePage = None


class WhoAmIResponse(KeyScope):
    """The key or token of this request."""

    workspace_id: Id = Field(description="UUID")
    api_key_id: Id = Field(description="UUID of the key; for a token, of the key that minted it")

    @classmethod
    def describing(cls, caller: Caller) -> Self:
        return cls.of(
            caller.wall,
            workspace_id=caller.workspace_id,
            api_key_id=caller.key_id,
            rights=sorted(caller.rights),
            channels=list(caller.wall.channels) or None,
            defaults=ScopeDefaultsResponse.of(caller.defaults),
            expires_at=caller.expires_at,
        )


class CreateTokenRequest(WallFields):
    """Restrictions, rights and lifetime of a token. At least one of `user_id`, `agent_id`, `run_id` and `channels` is
    required, unless the key itself is restricted."""

    model_config = example(user_id="alice", rights=["memory:read"])

    rights: list[RightName] = Field(
        min_length=1,
        max_length=100,
        examples=[["memory:read", "memory:write"]],
        description="Rights of the token, a subset of the key's",
    )
    expires_in_s: int = Field(900, ge=60, le=3_600, description="Seconds until it expires")


class CreateTokenResponse(ResponseModel):
    """The token, which the service does not store."""

    token: str = Field(description="Accepted wherever a key is: Authorization: Bearer <token>")
    expires_at: Time = Field(description="When it expires, at the latest together with its key")


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
    key = await request.app.state.keys.caller_by_id(caller.workspace_id, caller.key_id)
    ends = [expires_at, *([key.expires_at] if key and key.expires_at else [])]
    return CreateTokenResponse(token=token, expires_at=min(ends))
