"""Workspaces and API keys over HTTP."""

from __future__ import annotations

import json
from typing import Annotated, Any, Self
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field, ValidationError, model_validator

from service.api import errors
from service.api.deps import Admin, CallerOf, Operator, ResourcesOf
from service.api.free_json import JsonObject
from service.api.json_body import JsonRoute
from service.api.schemas import Channel, Id, Name, OnePage, RequestModel, ResponseModel, Time, Title
from service.db.tenants import keys
from service.domain.access import Caller, Right
from service.errors import Forbidden, InvalidInput, NotFound
from service.settings import PER_WORKSPACE, Settings

router = APIRouter(prefix="/v1", tags=["workspaces"], route_class=JsonRoute)

RIGHTS = ", ".join(sorted(Right))
RightName = Annotated[str, Field(max_length=50, examples=["memory:read"])]


class CreateWorkspaceRequest(RequestModel):
    """A workspace to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "acme"}]})

    name: Title = Field(examples=["acme"], description="For people")


class UpdateWorkspaceRequest(RequestModel):
    """Only the given fields change."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"settings": {"timezone": "Europe/Berlin"}}]})

    name: Title | None = Field(None, description="New name")
    settings: JsonObject | None = Field(
        None, description="Replaces the workspace's own settings", examples=[{"timezone": "Europe/Berlin"}]
    )


class WorkspaceResponse(ResponseModel):
    """A workspace and its own settings."""

    id: Id = Field(description="UUID")
    name: str = Field(description="For people")
    settings: dict[str, Any] = Field(description="Its own settings, which override the service's; empty: none")
    created_at: Time = Field(description="When it was created")


class CreateWorkspaceResponse(ResponseModel):
    """A workspace and its first key, which is shown only once."""

    id: Id = Field(description="UUID of the workspace")
    name: str = Field(description="For people")
    api_key: str = Field(description="The secret; it cannot be shown again")
    api_key_id: Id = Field(description="UUID of the key")


class CreateApiKeyRequest(RequestModel):
    """The rights of a key, its expiry, and the default scope of its requests."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "checkout agent", "rights": ["memory:read", "memory:write"]}]}
    )

    name: Title = Field(examples=["checkout agent"], description="For people")
    rights: list[RightName] = Field(
        min_length=1, max_length=50, examples=[["memory:read", "memory:write"]], description=f"What it may do: {RIGHTS}"
    )
    user_id: Name | None = Field(None, description="User of its requests that give no id")
    agent_id: Name | None = Field(None, description="Agent of its requests that give no id")
    run_id: Name | None = Field(None, description="Run of its requests that give no id")
    channel: Channel | None = Field(None, description="Channel of its requests that give none")
    expires_at: Time | None = Field(None, description="When it expires; left out: never")

    @model_validator(mode="after")
    def _known(self) -> Self:
        known = {str(right) for right in Right}
        for right in self.rights:
            if right not in known:
                raise ValueError(f"rights: each is one of {RIGHTS}")
        return self


UserOfCalls = Annotated[str | None, Field(description="User of its requests that give no id; null: none")]
AgentOfCalls = Annotated[str | None, Field(description="Agent of its requests that give no id; null: none")]
RunOfCalls = Annotated[str | None, Field(description="Run of its requests that give no id; null: none")]
ChannelOfCalls = Annotated[str | None, Field(description="Channel of its requests that give none; null: _global")]


class ApiKeyItem(ResponseModel):
    """A key without its secret."""

    id: Id = Field(description="UUID")
    name: str = Field(description="For people")
    hint: str = Field(description="The last four characters of the secret")
    rights: list[str] = Field(description="What it may do")
    user_id: UserOfCalls
    agent_id: AgentOfCalls
    run_id: RunOfCalls
    channel: ChannelOfCalls
    created_at: Time = Field(description="When it was created")
    expires_at: Time | None = Field(description="When it expires; null: never")
    revoked_at: Time | None = Field(description="When it was revoked; null: it was not")


class CreateApiKeyResponse(ResponseModel):
    """The key is shown only once; only its hash is stored."""

    id: Id = Field(description="UUID of the key")
    api_key: str = Field(description="The secret; it cannot be shown again")


class ApiKeysResponse(ResponseModel):
    """All keys of the workspace, without secrets."""

    results: list[ApiKeyItem] = Field(description="Revoked and expired ones included")
    next_cursor: OnePage = None


class WhoAmIResponse(ResponseModel):
    """The key of this request."""

    workspace_id: Id = Field(description="UUID")
    api_key_id: Id = Field(description="UUID")
    rights: list[str] = Field(description="What it may do")
    user_id: UserOfCalls
    agent_id: AgentOfCalls
    run_id: RunOfCalls
    channel: ChannelOfCalls
    expires_at: Time | None = Field(description="When it expires; null: never")


@router.get(
    "/whoami",
    operation_id="whoami",
    summary="The key of this request",
    response_model=WhoAmIResponse,
    responses=errors.documented(401, 503),
)
async def whoami(caller: CallerOf) -> WhoAmIResponse:
    """Its workspace, rights and default scope."""
    return WhoAmIResponse.of(caller, api_key_id=caller.key_id, rights=sorted(str(right) for right in caller.rights))


@router.post(
    "/workspaces",
    operation_id="create_workspace",
    summary="Create a workspace",
    status_code=201,
    response_model=CreateWorkspaceResponse,
    responses=errors.documented(400, 401, 403, 503),
)
async def create_workspace(body: CreateWorkspaceRequest, caller: Operator, res: ResourcesOf) -> CreateWorkspaceResponse:
    """Needs the right `operator`. The first key has every right in the new workspace, but not `operator`."""
    rights = [right for right in keys.EVERY_RIGHT if right is not Right.OPERATOR]
    issued = await keys.create_workspace(res.db, body.name, rights=rights)
    return CreateWorkspaceResponse(
        id=issued.workspace_id, name=body.name, api_key=issued.secret, api_key_id=issued.key_id
    )


@router.get(
    "/workspaces/current",
    operation_id="get_workspace",
    summary="The key's workspace",
    response_model=WorkspaceResponse,
    responses=errors.documented(401, 403, 503),
)
async def get_workspace(caller: CallerOf, res: ResourcesOf) -> WorkspaceResponse:
    """Its name and its own settings, without the service's."""
    async with res.db.read(caller.workspace_id) as session:
        found = await keys.workspace(session, caller.workspace_id)
    return WorkspaceResponse.of(found)


@router.patch(
    "/workspaces/current",
    operation_id="update_workspace",
    summary="Rename or configure the key's workspace",
    response_model=WorkspaceResponse,
    responses=errors.documented(400, 401, 403, 503),
)
async def update_workspace(
    body: UpdateWorkspaceRequest, caller: Admin, res: ResourcesOf, request: Request
) -> WorkspaceResponse:
    """`settings` replaces the workspace's own settings; other processes notice within seconds."""
    if body.settings is not None:
        _check_settings(body.settings)
    async with res.db.begin(caller.workspace_id) as session:
        await keys.change_workspace(session, caller.workspace_id, name=body.name, settings=body.settings)
        found = await keys.workspace(session, caller.workspace_id)
    request.app.state.keys.forget()
    return WorkspaceResponse.of(found)


@router.post(
    "/api-keys",
    operation_id="create_api_key",
    summary="Create an API key",
    status_code=201,
    response_model=CreateApiKeyResponse,
    responses=errors.documented(400, 401, 403, 503),
)
async def create_api_key(body: CreateApiKeyRequest, caller: Admin, res: ResourcesOf) -> CreateApiKeyResponse:
    """Only this answer shows the secret. A key cannot give a right that it does not have. Needs the right `admin`."""
    rights = [Right(right) for right in body.rights]
    _may_give(caller, rights)
    if body.expires_at is not None and body.expires_at <= res.clock():
        raise InvalidInput("expires_at: lies in the past.", field="expires_at")
    new = keys.NewKey(body.name, rights, body.user_id, body.agent_id, body.run_id, body.channel, body.expires_at)
    async with res.db.begin(caller.workspace_id) as session:
        issued = await keys.issue(session, caller.workspace_id, new)
    return CreateApiKeyResponse(id=issued.key_id, api_key=issued.secret)


@router.get(
    "/api-keys",
    operation_id="list_api_keys",
    summary="The workspace's keys",
    response_model=ApiKeysResponse,
    responses=errors.documented(401, 403, 503),
)
async def list_api_keys(caller: Admin, res: ResourcesOf) -> ApiKeysResponse:
    """Without their secrets, revoked keys included. Needs the right `admin`."""
    async with res.db.read(caller.workspace_id) as session:
        found = await keys.listing(session, caller.workspace_id)
    return ApiKeysResponse(results=[ApiKeyItem.of(each) for each in found])


@router.delete(
    "/api-keys/{id}",
    operation_id="revoke_api_key",
    summary="Revoke an API key",
    status_code=204,
    responses=errors.documented(401, 403, 404, 503),
)
async def revoke_api_key(id: str, caller: Admin, res: ResourcesOf, request: Request) -> None:
    """At once in this process, within five seconds in the others. Repeating it changes nothing."""
    try:
        wanted = UUID(id)
    except ValueError:
        raise NotFound("There is no key with this id.", field="id") from None
    async with res.db.begin(caller.workspace_id) as session:
        found = await keys.revoke(session, caller.workspace_id, wanted)
    if not found:
        raise NotFound("There is no key with this id.", field="id")
    request.app.state.keys.forget()


def _may_give(caller: Caller, rights: list[Right]) -> None:
    """A key can only give rights that it has, or it could extend its own."""
    for right in rights:
        if not caller.may(right):
            raise Forbidden(f"This key cannot give the right {right}, which it does not hold.", field="rights")


def _check_settings(wanted: dict[str, Any]) -> None:
    for name in wanted:
        if name not in PER_WORKSPACE:
            raise InvalidInput(
                f"settings.{name}: is not one of {', '.join(sorted(PER_WORKSPACE))}.", field=f"settings.{name}"
            )
    try:
        Settings.model_validate_json(json.dumps(wanted), strict=True)
    except ValidationError as exc:
        field, message = errors.first_message(exc.errors(), lambda where: ".".join(("settings", *map(str, where))))
        raise InvalidInput(f"{field}: {message}", field=field) from None
