"""Routes for user profiles."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import Field

from service.cognition import profile
from service.cognition.values import ProfileResponse
from service.domain.request import StoredAnswer
from service.http import errors
from service.http.deps import Reader, ResourcesOf, Writer
from service.http.free_json import JsonList, JsonObject
from service.http.json_body import JsonRoute
from service.http.preconditions import VersionedCallOf
from service.http.schemas import Name, RequestModel, example
from service.http.writes import answer, send

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
    metadata: JsonObject = Field(default_factory=dict, description="Anything else")


@router.get("", summary="Get the profile of a user", response_model=ProfileResponse, responses=errors.document(404))
async def get_user_profile(user_id: UserId, caller: Reader, res: ResourcesOf) -> Response:
    """404 if none is stored. The ETag is for If-Match."""
    return send(answer(200, await profile.read(caller.workspace_id, user_id, res)))


@router.put(
    "",
    summary="Replace the profile of a user",
    response_model=ProfileResponse,
    responses={201: {"model": ProfileResponse, "description": "Created"}, **errors.document(404)},
)
async def put_user_profile(
    user_id: UserId, body: PutUserProfileRequest, caller: Writer, res: ResourcesOf, call: VersionedCallOf
) -> Response:
    """Preferences, areas of expertise and style of communication are redacted. `POST /v1/recall` returns the profile as
    user_context."""
    call = call.with_serializer(_answer_stored)
    stored = await profile.replace(caller.workspace_id, user_id, dict(body), res, call)
    return send(_answer_stored(stored))


def _answer_stored(stored: tuple[ProfileResponse, bool]) -> StoredAnswer:
    return answer(201 if stored[1] else 200, stored[0])
