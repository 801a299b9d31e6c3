"""Routes for user profiles."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import Field

from service.cognition import profile
from service.cognition.profile import ProfileOutcome
from service.cognition.values import Profile
from service.domain.request import StoredAnswer
from service.http import errors
from service.http.deps import Reader, ResourcesOf, Writer
from service.http.free_json import JsonList, JsonObject
from service.http.json_body import JsonRoute
from service.http.preconditions import ExpectedOf
from service.http.schemas import Name, RequestModel, ResponseModel, Time, example
from service.http.writes import CallOf, answer, send

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


class ProfileResponse(ResponseModel):
    """The profile of a user."""

    user_id: str = Field(description="Whose profile")
    preferences: dict[str, Any] = Field(description="What the user likes, under names of your own")
    expertise_areas: list[Any] = Field(description="What the user knows well")
    communication_style: dict[str, Any] = Field(description="How to address the user, under names of your own")
    metadata: dict[str, Any] = Field(description="Your own data")
    version: int = Field(description="Starts at 1, incremented by each change; the ETag")
    created_at: Time = Field(description="When it was first set")
    updated_at: Time = Field(description="When it was last changed")


@router.get("", summary="Get the profile of a user", response_model=ProfileResponse, responses=errors.document(404))
async def get_user_profile(user_id: UserId, caller: Reader, res: ResourcesOf) -> Response:
    """404 if none is stored. The ETag is for If-Match."""
    return send(_answer_stored(ProfileOutcome(await profile.read(caller.workspace_id, user_id, res), is_new=False)))


@router.put(
    "",
    summary="Replace the profile of a user",
    response_model=ProfileResponse,
    responses={201: {"model": ProfileResponse, "description": "Created"}, **errors.document(404)},
)
async def put_user_profile(
    user_id: UserId, body: PutUserProfileRequest, caller: Writer, res: ResourcesOf, call: CallOf, expected: ExpectedOf
) -> Response:
    """Preferences, areas of expertise and style of communication are redacted. `POST /v1/recall` returns the profile as
    user_context."""
    call = call.with_serializer(_answer_stored)
    stored = await profile.replace(caller.workspace_id, user_id, dict(body), res, call, expected=expected)
    return send(_answer_stored(stored))


def profile_response(found: Profile) -> ProfileResponse:
    return ProfileResponse.of(found, **asdict(found.traits))


def _answer_stored(outcome: ProfileOutcome) -> StoredAnswer:
    return answer(201 if outcome.is_new else 200, profile_response(outcome.profile))
