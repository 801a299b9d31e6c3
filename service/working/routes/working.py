"""Routes for working memory, with their models: what an agent keeps for one session, by default for an hour."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Annotated, Self
from uuid import uuid4

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import Field, JsonValue, model_validator

from service.domain.request import Operation
from service.domain.scope import Scope
from service.http import errors
from service.http.deps import AgentId, CallerOf, Changer, ChannelName, PrimaryReader, ResourcesOf, UserId, Writer
from service.http.free_json import Payload
from service.http.json_body import JsonRoute
from service.http.preconditions import ExpectedOf
from service.http.reads import AuditReadOf
from service.http.schemas import (
    DeletedCountResponse,
    Id,
    Name,
    RequestModel,
    ResponseModel,
    Role,
    Speaker,
    Text,
    Time,
    example,
)
from service.http.writes import refuse_key, sends, sends_new
from service.working import working
from service.working.values import WorkingEntry, WorkingKind, session_id
from service.working.working import ONLY

Ttl = Annotated[
    int | None,
    Field(ge=1, le=604_800, description="Lifetime in seconds, at most a week; default: the service's setting (3600)"),
]


class SetWorkingItemRequest(RequestModel):
    """A JSON value to store under a key, replacing the previous value."""

    model_config = example(value={"step": 3}, ttl_seconds=600)

    value: Payload = Field(description="Any JSON; 64 kB at most")
    ttl_seconds: Ttl = None


class AddWorkingTurnRequest(RequestModel):
    """A turn to keep in working memory only, not in the conversation."""

    model_config = example(role="user", content="Book the night train.")

    role: Role = Field(description="user, assistant, system or tool")
    content: Text = Field(description="What was said")
    name: Annotated[Speaker, Field(min_length=1)] | None = Field(None, description="Name of the speaker")
    timestamp: Time | None = Field(None, description="When it was said")
    ttl_seconds: Ttl = None


class PushThoughtRequest(RequestModel):
    """A thought to keep."""

    model_config = example(thought="Ask for the passport number last.")

    thought: Text = Field(description="The agent's thought")
    ttl_seconds: Ttl = None


class SetActiveGoalRequest(RequestModel):
    """The goal of the session: a description, the id of a goal, or both."""

    model_config = example(description="Plan the trip to Oslo")

    goal_id: Id | None = Field(None, description="UUID of a goal")
    description: Text | None = Field(None, description="What the session is working on")
    ttl_seconds: Ttl = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.goal_id is None and self.description is None:
            raise ValueError("description: give a description, a goal_id or both")
        return self


class WorkingEntryResponse(ResponseModel):
    """Common fields of all entries of working memory."""

    version: int = Field(description="Incremented by every change in working memory, never reused; the ETag")
    created_at: Time = Field(description="When it was first set")
    expires_at: Time = Field(description="When it expires")


class WorkingItemResponse(WorkingEntryResponse):
    """A value with its key."""

    key: str = Field(description="As in the path")
    value: JsonValue = Field(description="Any JSON, redacted")


class WorkingTurnResponse(WorkingEntryResponse):
    """A turn in working memory."""

    role: str = Field(description="user, assistant, system, tool, or any other word")
    content: str = Field(description="What was said, redacted")
    name: str | None = Field(description="Name of the speaker; null: not given")
    timestamp: Time | None = Field(description="When it was said; null: not given")
    turn_id: Id | None = Field(description="UUID of the stored turn it was copied from; null: none")
    turn_index: int | None = Field(description="Index of that turn in the conversation, from 0; null: none")


class ThoughtResponse(WorkingEntryResponse):
    """A thought in working memory."""

    thought: str = Field(description="The agent's thought, redacted")


class ActiveGoalResponse(WorkingEntryResponse):
    """The goal of the session."""

    goal_id: Id | None = Field(description="UUID of the goal; null: only a description")
    description: str = Field(description="As given, else that of the goal")


class WorkingTurnList(ResponseModel):
    """Newest first."""

    results: list[WorkingTurnResponse] = Field(description="At most `limit` turns")


class ThoughtList(ResponseModel):
    """Newest first."""

    results: list[ThoughtResponse] = Field(description="At most `limit` thoughts")


class WorkingMemoryResponse(ResponseModel):
    """All entries of a session that have not expired; turns and thoughts newest first."""

    conversation_id: str = Field(description="As in the path")
    user_id: Name | None = Field(description="Owner of the session; null: none")
    agent_id: Name | None = Field(description="Owner of the session; null: none")
    channel: str = Field(description="Channel of the session; default _global")
    turns: list[WorkingTurnResponse] = Field(description="At most 100 unless configured otherwise")
    thoughts: list[ThoughtResponse] = Field(description="At most 100 unless configured otherwise")
    items: dict[str, WorkingItemResponse] = Field(description="Values by key")
    goal: ActiveGoalResponse | None = Field(description="The goal of the session; null: not set")


def working_turn_response(entry: WorkingEntry) -> WorkingTurnResponse:
    return WorkingTurnResponse.of(entry, **entry.value)


def thought_response(entry: WorkingEntry) -> ThoughtResponse:
    return ThoughtResponse.of(entry, thought=entry.value)


def active_goal_response(entry: WorkingEntry) -> ActiveGoalResponse:
    return ActiveGoalResponse.of(entry, **entry.value)


async def _scope(
    conversation_id: Annotated[Name, Path(description="Id of a conversation, or any name for a session")],
    caller: CallerOf,
    user_id: UserId = None,
    agent_id: AgentId = None,
    channel: ChannelName = None,
) -> Scope:
    """The session with exactly these ids; the conversation replaces the run."""
    user, agent, _ = caller.ids(user_id, agent_id, None)
    return Scope(caller.workspace_id, user, agent, conversation_id, caller.channel(channel))


SessionOf = Annotated[Scope, Depends(_scope)]


USES: Mapping[str, Operation] = {"GET": "retrieve", "DELETE": "delete_working"}


async def audit_use(request: Request, scope: SessionOf, res: ResourcesOf, note: AuditReadOf) -> AsyncIterator[None]:
    """Audits the operation at level verbose. Written in the background like reads, as working memory does not survive a
    crash."""
    yield
    if res.settings.history.audit_level == "verbose":
        route, done = request.scope["route"].path, USES.get(request.method, "set_working")
        owner, session = replace(scope, run_id=None), session_id(scope)
        note(route, owner, (), subject="working", operation=done, working_session_id=session)


router = APIRouter(
    prefix="/v1/working/{conversation_id}",
    tags=["working memory"],
    dependencies=[Depends(refuse_key), Depends(audit_use)],
    route_class=JsonRoute,
)

Key = Annotated[Name, Path(description="Up to 255 characters; may contain slashes", examples=["cart"])]
Limit = Annotated[int, Query(ge=1, le=1_000)]


@router.get("", summary="Get all entries of a session")
async def get_working_context(scope: SessionOf, caller: PrimaryReader, res: ResourcesOf) -> WorkingMemoryResponse:
    """Parts without entries are empty. Reading does not extend the lifetime of entries."""
    entries = await working.read_all(scope, res)
    by_kind: dict[WorkingKind, list[WorkingEntry]] = {}
    for entry in entries:
        by_kind.setdefault(entry.kind, []).append(entry)
    items = sorted(by_kind.get("item", ()), key=lambda entry: entry.key)
    return WorkingMemoryResponse.of(
        scope,
        conversation_id=scope.run_id,
        turns=[working_turn_response(entry) for entry in by_kind.get("turn", ())],
        thoughts=[thought_response(entry) for entry in by_kind.get("thought", ())],
        items={entry.key: WorkingItemResponse.of(entry) for entry in items},
        goal=next(map(active_goal_response, by_kind.get("goal", ())), None),
    )


@router.delete("", summary="Delete all entries of a session")
async def clear_working_context(scope: SessionOf, caller: Writer, res: ResourcesOf) -> DeletedCountResponse:
    """Returns 0 if there are none."""
    return DeletedCountResponse(deleted=await working.clear(scope, res))


@router.put(
    "/items/{key:path}",
    summary="Set the value of a key",
    status_code=201,
    responses={200: {"model": WorkingItemResponse, "description": "The value was replaced"}, **errors.document(404)},
)
@sends_new(WorkingItemResponse.of)
async def set_working_item(
    key: Key, body: SetWorkingItemRequest, scope: SessionOf, caller: Writer, res: ResourcesOf, expected: ExpectedOf
) -> tuple[WorkingEntry, bool]:
    """The value is redacted. Above the session's limit the least recently used value is deleted. With `If-Match`, fails
    with 412 if the value has changed or expired."""
    return await working.put(scope, "item", key, body.value, res, ttl_s=body.ttl_seconds, expected=expected)


@router.get("/items/{key:path}", summary="Get the value of a key", responses=errors.document(404))
@sends(WorkingItemResponse.of)
async def get_working_item(key: Key, scope: SessionOf, caller: PrimaryReader, res: ResourcesOf) -> WorkingEntry:
    """Counts as a use, but does not extend the lifetime of the value."""
    return await working.read(scope, "item", key, res)


@router.delete("/items/{key:path}", summary="Delete the value of a key", responses=errors.document(404))
async def delete_working_item(
    key: Key, scope: SessionOf, caller: Writer, res: ResourcesOf, expected: ExpectedOf
) -> DeletedCountResponse:
    """404 if there is none or it has expired. With `If-Match`, fails with 412 if the value has changed."""
    await working.remove(scope, "item", key, res, expected=expected)
    return DeletedCountResponse(deleted=1)


@router.post("/turns", summary="Add a turn", status_code=201)
@sends(working_turn_response, 201)
async def add_working_turn(
    body: AddWorkingTurnRequest, scope: SessionOf, caller: Writer, res: ResourcesOf
) -> WorkingEntry:
    """The turn is not added to the conversation itself. Above the session's limit the oldest turn is deleted."""
    return await working.add_turn(
        scope, body.role, body.content, res, name=body.name, timestamp=body.timestamp, ttl_s=body.ttl_seconds
    )


@router.get("/turns", summary="List the newest turns")
async def list_working_turns(
    scope: SessionOf, caller: PrimaryReader, res: ResourcesOf, limit: Limit = 10
) -> WorkingTurnList:
    """Newest first. Does not count as a use."""
    entries = await working.latest(scope, "turn", res, limit=limit)
    return WorkingTurnList(results=[working_turn_response(entry) for entry in entries])


@router.post("/thoughts", summary="Add a thought", status_code=201)
@sends(thought_response, 201)
async def push_thought(body: PushThoughtRequest, scope: SessionOf, caller: Writer, res: ResourcesOf) -> WorkingEntry:
    """Above the session's limit the oldest thought is deleted."""
    key = str(uuid4())
    entry, _ = await working.put(scope, "thought", key, body.thought, res, ttl_s=body.ttl_seconds)
    return entry


@router.get("/thoughts", summary="List the newest thoughts")
async def list_thoughts(scope: SessionOf, caller: PrimaryReader, res: ResourcesOf, limit: Limit = 10) -> ThoughtList:
    """Newest first. Does not count as a use."""
    entries = await working.latest(scope, "thought", res, limit=limit)
    return ThoughtList(results=[thought_response(entry) for entry in entries])


@router.put(
    "/goal",
    summary="Set the goal of the session",
    status_code=201,
    responses={200: {"model": ActiveGoalResponse, "description": "The goal was replaced"}, **errors.document(404)},
)
@sends_new(active_goal_response)
async def set_active_goal(
    body: SetActiveGoalRequest, scope: SessionOf, caller: Changer, res: ResourcesOf, expected: ExpectedOf
) -> tuple[WorkingEntry, bool]:
    """`goal_id` must be a goal of the same user and agent, else 404. The description defaults to that of the goal."""
    return await working.put_goal(scope, body.goal_id, body.description, res, ttl_s=body.ttl_seconds, expected=expected)


@router.get("/goal", summary="Get the goal of the session", responses=errors.document(404))
@sends(active_goal_response)
async def get_active_goal(scope: SessionOf, caller: PrimaryReader, res: ResourcesOf) -> WorkingEntry:
    """404 if none is set or it has expired."""
    return await working.read(scope, "goal", ONLY, res)
