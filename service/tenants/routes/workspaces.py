"""Routes for workspaces."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request
from pydantic import Field, ValidationError

from service.domain.errors import InvalidInput
from service.http import errors
from service.http.deps import Admin, CallerOf, Operator, ResourcesOf
from service.http.free_json import JsonObject
from service.http.json_body import JsonRoute
from service.http.schemas import Id, RequestModel, ResponseModel, Time, Title, example
from service.http.writes import refuse_key
from service.kit.settings import GRANTED, PER_WORKSPACE, Settings
from service.tenants import workspaces

router = APIRouter(prefix="/v1", tags=["workspaces"], route_class=JsonRoute, dependencies=[Depends(refuse_key)])


class CreateWorkspaceRequest(RequestModel):
    """A workspace to create."""

    model_config = example(name="acme")

    name: Title = Field(examples=["acme"], description="Name, for people")


class UpdateWorkspaceRequest(RequestModel):
    """Only the given fields change."""

    model_config = example(settings={"timezone": "Europe/Berlin"})

    name: Title | None = Field(None, description="New name")
    settings: JsonObject | None = Field(
        None, description="Replaces the workspace's own settings", examples=[{"timezone": "Europe/Berlin"}]
    )


class WorkspaceResponse(ResponseModel):
    """A workspace and its own settings."""

    id: Id = Field(description="UUID")
    name: str = Field(description="Name, for people")
    settings: dict[str, Any] = Field(description="Its own settings, which override the service's")
    created_at: Time = Field(description="When it was created")


class CreateWorkspaceResponse(ResponseModel):
    """A workspace and its first key, which is shown only once."""

    id: Id = Field(description="UUID of the workspace")
    name: str = Field(description="Name, for people")
    api_key: str = Field(description="The secret; it cannot be shown again")
    api_key_id: Id = Field(description="UUID of the key")


@router.post("/workspaces", summary="Create a workspace", status_code=201)
async def create_workspace(body: CreateWorkspaceRequest, caller: Operator, res: ResourcesOf) -> CreateWorkspaceResponse:
    """The first key has every right in the new workspace, except those over the whole service: `operator` and
    `metrics`."""
    issued = await workspaces.create(body.name, res)
    return CreateWorkspaceResponse(
        id=issued.workspace_id, name=body.name, api_key=issued.secret, api_key_id=issued.key_id
    )


@router.get("/workspaces/current", summary="Get the key's workspace", responses=errors.document(403))
async def get_workspace(caller: CallerOf, res: ResourcesOf) -> WorkspaceResponse:
    """Returns the name and settings of the workspace, without the service's settings."""
    return WorkspaceResponse.of(await workspaces.read(caller.workspace_id, res))


@router.patch("/workspaces/current", summary="Rename or configure the key's workspace")
async def update_workspace(
    body: UpdateWorkspaceRequest, caller: Admin, res: ResourcesOf, request: Request
) -> WorkspaceResponse:
    """`settings` replaces the workspace's own settings; other processes pick them up within seconds. A limit
    (`model_budget`, `memory_retention_days`) can only be lowered below the service's, except by a key with the right
    `operator`; such limits are shown as `granted`."""
    settings = None
    if body.settings is not None:
        settings = {name: value for name, value in body.settings.items() if name != GRANTED}
        _check_settings(settings)
    workspace = await workspaces.change(caller, body.name, settings, res)
    request.app.state.keys.forget()
    return WorkspaceResponse.of(workspace)


def _check_settings(wanted: dict[str, Any]) -> None:
    for name in wanted:
        if name not in PER_WORKSPACE:
            raise InvalidInput(
                f"settings.{name}: is not one of {', '.join(sorted(PER_WORKSPACE))}.", field=f"settings.{name}"
            )
    try:
        Settings.check_overrides(wanted)
    except ValidationError as exc:
        field, message = errors.first_message(exc.errors(), lambda where: ".".join(("settings", *map(str, where[1:]))))
        raise InvalidInput(f"{field}: {message}", field=field) from None
