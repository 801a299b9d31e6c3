"""Routes for tool invocations: record, list, count."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field, JsonValue

from service.cognition import procedures
from service.cognition.values import Invocation, InvocationFilter, ToolName, ToolStatsItem
from service.domain.errors import InvalidInput
from service.domain.scope import Scope
from service.domain.text import RedactionCount
from service.http import cursors, errors
from service.http.deps import AgentId, CallerOf, CursorOf, Reader, ResourcesOf, RunId, ScopeOf, UserId, Writer, scope_of
from service.http.free_json import Payload
from service.http.json_body import JsonRoute
from service.http.schemas import (
    Channel,
    Filled,
    Id,
    NextCursor,
    OfAgent,
    OfChannel,
    OfRun,
    OfUser,
    ResponseModel,
    ScopeFields,
    Time,
    example,
)
from service.http.writes import CallOf, sends

router = APIRouter(prefix="/v1", tags=["procedures"], route_class=JsonRoute)

Name = Annotated[str | None, Query(min_length=1, max_length=100)]
OnlyChannel = Annotated[Channel | None, Query(description="Only this channel; default: all")]


class RecordToolInvocationRequest(ScopeFields):
    """One use of a tool. At least one of user_id, agent_id, run_id and conversation_id is required; omitted ids are
    those of the conversation."""

    model_config = example(
        user_id="alice",
        tool_name="search_flights",
        task_type="travel",
        tool_input={"from": "OSL", "to": "BGO"},
        tool_output={"found": 12},
        success=True,
        latency_ms=340,
    )

    conversation_id: Id | None = Field(None, description="UUID of the conversation it was used in")
    turn_id: Id | None = Field(None, description="UUID of a turn of the conversation; needs conversation_id")
    tool_name: ToolName = Field(description="Name of the tool")
    task_type: ToolName | None = Field(
        None, description="Your name for the kind of task; statistics can be filtered by it"
    )
    tool_input: Payload = Field(description="What it was called with; redacted")
    tool_output: Payload = Field(None, description="What it returned; redacted")
    success: bool = Field(description="Whether it worked")
    latency_ms: Annotated[float | None, Field(ge=0, le=1e9)] = Field(
        None, description="How long it took, in milliseconds"
    )
    error_message: Annotated[Filled | None, Field(min_length=1, max_length=10_000)] = Field(
        None, description="Its error message when it failed"
    )
    timestamp: Time | None = Field(None, description="When it was used; default now")


class _Use(ResponseModel):
    """Common fields of responses about an invocation."""

    id: int = Field(description="Number of the invocation")
    tool_name: str = Field(description="Name of the tool")
    task_type: str | None = Field(description="Your name for the kind of task; null: none")
    success: bool = Field(description="Whether it worked")
    latency_ms: float | None = Field(description="How long it took, in milliseconds; null: unknown")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    channel: OfChannel
    conversation_id: Id | None = Field(description="UUID of the conversation it was used in; null: none")
    turn_id: Id | None = Field(description="UUID of the turn it was used in; null: none")
    turn_index: int | None = Field(description="Index of that turn in the conversation, from 0; null: no turn")
    timestamp: Time = Field(description="When it was used")


class RecordedToolInvocationResponse(_Use):
    """The invocation as recorded, without input and output."""

    redactions: list[RedactionCount] = Field(description="What was redacted in input and output, by kind; may be empty")


class ToolInvocationResponse(_Use):
    """One use of a tool, with its input and output."""

    tool_input: JsonValue = Field(description="What it was called with, redacted")
    tool_output: JsonValue = Field(description="What it returned, redacted; null: not given")
    error_message: str | None = Field(description="Its error message, redacted; null: none")
    recorded_at: Time = Field(description="When it was recorded")


class ToolInvocationPage(ResponseModel):
    """Uses of tools by time of recording, newest first; pass `next_cursor` as `cursor` for the next page."""

    results: list[ToolInvocationResponse] = Field(description="At most `limit` uses")
    next_cursor: NextCursor = None


class ToolStatsResponse(ResponseModel):
    """Most used first."""

    results: list[ToolStatsItem] = Field(description="One entry per tool")


def recorded_invocation_response(use: Invocation) -> RecordedToolInvocationResponse:
    return RecordedToolInvocationResponse.of(use, redactions=list(use.redactions))


@router.post("/tool-invocations", summary="Record a use of a tool", status_code=201, responses=errors.document(404))
@sends(recorded_invocation_response, 201)
async def record_tool_invocation(
    body: RecordToolInvocationRequest, caller: Writer, res: ResourcesOf, call: CallOf
) -> Invocation:
    """Input and output are redacted and may have 262,144 characters of JSON each."""
    if body.turn_id is not None and body.conversation_id is None:
        raise InvalidInput("turn_id: needs conversation_id.", field="turn_id")
    scope = scope_of(caller, body.scope_ids, body.channel, needs_id=False)
    if body.conversation_id is not None:
        scope = await procedures.scope_of_conversation(caller.workspace_id, body.conversation_id, scope, res)
    scope_or_time = {"user_id", "agent_id", "run_id", "channel", "timestamp"}
    fields = {name: value for name, value in body if name not in scope_or_time}
    new = Invocation(scope.require_owner(), timestamp=body.timestamp or res.clock(), **fields)
    return await procedures.record_invocation(new, res, call)


@router.get("/tool-invocations", summary="List the tool invocations of a scope")
async def list_tool_invocations(
    caller: Reader,
    scope: ScopeOf,
    res: ResourcesOf,
    cursor: CursorOf,
    channel: OnlyChannel = None,
    conversation_id: Annotated[Id | None, Query()] = None,
    tool_name: Name = None,
    task_type: Name = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> ToolInvocationPage:
    """Newest first by time of recording, as far back as invocations are kept."""
    wanted = InvocationFilter(task_type, channel, tool_name, conversation_id)
    after = cursor.key(cursors.Moment, cursors.Number)
    invocations = await procedures.list_invocations(scope, wanted, res, after=after, limit=limit + 1)
    page, last = cursors.cut(invocations, limit)
    return ToolInvocationPage(
        results=[ToolInvocationResponse.of(invocation) for invocation in page],
        next_cursor=cursor.pack(last.recorded_at, last.id) if last and last.recorded_at else None,
    )


async def _scope_of(caller: CallerOf, user_id: UserId = None, agent_id: AgentId = None, run_id: RunId = None) -> Scope:
    """The scope; without ids the whole workspace."""
    return scope_of(caller, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, needs_id=False)


@router.get("/tools/stats", summary="Get usage, success rate and latency of each tool")
async def get_tool_stats(
    caller: Reader,
    scope: Annotated[Scope, Depends(_scope_of)],
    res: ResourcesOf,
    task_type: Name = None,
    channel: OnlyChannel = None,
    tool_name: Name = None,
    since: Annotated[
        Time | None, Query(description="Only invocations with a `timestamp` at or after this moment")
    ] = None,
) -> ToolStatsResponse:
    """Computed from the invocations, as far back as they are kept."""
    wanted = InvocationFilter(task_type, channel, tool_name, None, since)
    return ToolStatsResponse(results=await procedures.tool_stats(scope, wanted, res))
