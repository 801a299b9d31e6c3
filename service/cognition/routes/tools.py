"""Routes for tool invocations: record, list, count."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from service.cognition import procedures
from service.cognition.routes.procedure_models import (
    RecordedToolInvocationResponse,
    RecordToolInvocationRequest,
    ToolInvocationPage,
    ToolInvocationResponse,
    ToolStatsItem,
    ToolStatsResponse,
)
from service.cognition.values import Invocation, InvocationFilter
from service.domain.errors import InvalidInput
from service.domain.request import StoredAnswer
from service.domain.scope import Scope
from service.http import cursors, errors
from service.http.deps import AgentId, CallerOf, Reader, ResourcesOf, RunId, ScopeOf, UserId, Writer, optional_scope
from service.http.json_body import JsonRoute
from service.http.schemas import Channel, Id, RedactionCount, Time
from service.http.writes import CallOf, answer, send

router = APIRouter(prefix="/v1", tags=["procedures"], route_class=JsonRoute)

READ = errors.keyed(400)
Name = Annotated[str | None, Query(min_length=1, max_length=100)]
OnlyChannel = Annotated[Channel | None, Query(description="Only this channel; default: all")]


@router.post(
    "/tool-invocations",
    summary="Record a use of a tool",
    status_code=201,
    response_model=RecordedToolInvocationResponse,
    responses=errors.keyed(400, 404, 409, 413, 422),
)
async def record_tool_invocation(
    body: RecordToolInvocationRequest, caller: Writer, res: ResourcesOf, call: CallOf
) -> Response:
    """Input and output are redacted and may have 262,144 characters of JSON each."""
    if body.turn_id is not None and body.conversation_id is None:
        raise InvalidInput("turn_id: needs conversation_id.", field="turn_id")
    scope = optional_scope(
        caller, user_id=body.user_id, agent_id=body.agent_id, run_id=body.run_id, channel=body.channel
    )
    if body.conversation_id is not None:
        scope = await procedures.scope_of_conversation(caller.workspace_id, body.conversation_id, scope, res)
    new = Invocation(
        scope.require_owner(),
        body.tool_name,
        body.tool_input,
        body.success,
        body.timestamp or res.clock(),
        body.tool_output,
        body.task_type,
        body.latency_ms,
        body.error_message,
        body.conversation_id,
        body.turn_id,
    )
    return send(_answer_recorded(await procedures.record_invocation(new, res, call.with_serializer(_answer_recorded))))


@router.get("/tool-invocations", summary="List the tool invocations of a scope", responses=READ)
async def list_tool_invocations(
    caller: Reader,
    scope: ScopeOf,
    res: ResourcesOf,
    channel: OnlyChannel = None,
    conversation_id: Annotated[Id | None, Query()] = None,
    tool_name: Name = None,
    task_type: Name = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> ToolInvocationPage:
    """Newest first by time of recording, as far back as invocations are kept."""
    wanted = InvocationFilter(task_type, channel, tool_name, conversation_id)
    after = None if cursor is None else cursors.unpack(cursor, _time_and_number)
    invocations = await procedures.list_invocations(scope, wanted, res, after=after, limit=limit + 1)
    page, last = cursors.cut(invocations, limit)
    return ToolInvocationPage(
        results=[ToolInvocationResponse.of(invocation) for invocation in page],
        next_cursor=cursors.pack(f"{last.recorded_at.isoformat()}|{last.id}") if last and last.recorded_at else None,
    )


async def _optional_scope(
    caller: CallerOf, user_id: UserId = None, agent_id: AgentId = None, run_id: RunId = None
) -> Scope:
    """The scope; without ids the whole workspace."""
    return optional_scope(caller, user_id=user_id, agent_id=agent_id, run_id=run_id)


@router.get("/tools/stats", summary="Get usage, success rate and latency of each tool", responses=READ)
async def get_tool_stats(
    caller: Reader,
    scope: Annotated[Scope, Depends(_optional_scope)],
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
    stats = await procedures.tool_stats(scope, wanted, res)
    return ToolStatsResponse(results=[ToolStatsItem.of(stat) for stat in stats])


def _answer_recorded(use: Invocation) -> StoredAnswer:
    redactions = [RedactionCount.of(redaction) for redaction in use.redactions]
    return answer(201, RecordedToolInvocationResponse.of(use, redactions=redactions))


def _time_and_number(text: str) -> tuple[datetime, int]:
    moment, _, number = text.partition("|")
    if not 0 <= int(number) < 2**63:
        raise ValueError
    return cursors.aware(moment), int(number)
