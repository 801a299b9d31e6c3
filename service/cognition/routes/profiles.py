"""Routes for user profiles."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from service.cognition import profile
from service.cognition.values import ProfileResponse
from service.http import errors
from service.http.deps import Reader, ResourcesOf, Writer
from service.http.free_json import JsonList, JsonObject
from service.http.json_body import JsonRoute
from service.http.preconditions import VersionedCallOf
from service.http.schemas import Name, RequestModel, example
from service.http.writes import sends, sends_new

router = APIRouter(prefix="/v1/users/{user_id}/profile", tags=["profiles"], route_class=JsonRoute)

UserId = Annotated[Name, Path()]


class PutUserProfileRequest(RequestModel):
    """The whole profile; omitted fields become empty."""

    model_config = example(
        preferences={"units": "metric", "language": "pt"},
        expertise_areas=["sailing", "Rust"],
        communication_style={"tone": "brief"},
    )

    preferences: JsonObject = Field(default_factory=dict, description="What the user likes, under names of your own")
    expertise_areas: JsonList = Field(default_factory=list, description="What the user knows well")
    communication_style: JsonObject = Field(
        default_factory=dict, description="How to address the user, under names of your own"
    )
    metadata: JsonObject = Field(default_factory=dict, description="Your own data about the user")


@router.get("", summary="Get the profile of a user", responses=errors.document(404))
@sends()
async def get_user_profile(user_id: UserId, caller: Reader, res: ResourcesOf) -> ProfileResponse:
    """404 if none is stored. The ETag is for If-Match."""
    caller.check_ids(user_id, None, None)
    return await profile.read(caller.workspace_id, user_id, res)


@router.put(
    "",
    summary="Replace the profile of a user",
    responses={201: {"model": ProfileResponse, "description": "Created"}, **errors.document(404)},
)
@sends_new(ProfileResponse.of)
async def put_user_profile(
    user_id: UserId, body: PutUserProfileRequest, caller: Writer, res: ResourcesOf, call: VersionedCallOf
) -> tuple[ProfileResponse, bool]:
    """Preferences, areas of expertise and style of communication are redacted. `POST /v1/recall` returns the profile as
    user_context."""
    caller.check_ids(user_id, None, None)
    return await profile.replace(caller.workspace_id, user_id, dict(body), res, call)
