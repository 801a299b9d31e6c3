"""The audit log over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from service.domain.audit import AuditFilter, Operation, Subject
from service.http import cursors, errors
from service.http.deps import Auditor, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.schemas import Id, NextCursor, OfUser, ResponseModel, Time
from service.tenants import workspaces

router = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=JsonRoute)

Text = Annotated[str | None, Query(min_length=1, max_length=255)]


class AuditItem(ResponseModel):
    """One operation, without memory text."""

    id: Id = Field(description="UUID of the entry")
    recorded_at: Time = Field(
        description="When it was written: a change in its own transaction, a read within a second"
    )
    operation: str = Field(description="What was done; one of the values of the parameter `operation`")
    memory_type: str | None = Field(
        description="What it was done to; one of the values of the parameter `memory_type`; null: not known"
    )
    affected_ids: list[Id] = Field(
        description="UUIDs of what was changed or found; empty when a whole scope or workspace was affected"
    )
    request_id: str | None = Field(
        description="X-Request-ID of the request; starts with job: or operation: when a job did it; null: not known"
    )
    api_key_id: Id | None = Field(description="UUID of the key of the request; null: a job did it")
    user_id: OfUser
    session_id: str | None = Field(
        description="The `session_id` of a store, else X-Session-Id of the request; null: none"
    )
    conversation_id: Id | None = Field(
        description="UUID of the conversation that was opened, changed or extended; null: none"
    )
    source_channel: str | None = Field(description="The channel of what it was done to, or of the request; null: none")
    target_channels: list[str] = Field(
        description="Of a read: the channels searched; empty for a list of every channel, and else"
    )
    query_text: str | None = Field(
        description="Of a read at level `reads` or `verbose`: the query, redacted; else null"
    )
    result_count: int | None = Field(description="Of a read: number of results, from 0; else null")
    latency_ms: float | None = Field(description="Of a read: duration in milliseconds; else null")
    success: bool = Field(description="Always true: failures are not logged")
    error_message: str | None = Field(description="Always null: failures are not logged")
    promoted_from_channel: str | None = Field(description="Of a promotion: the channel of the original; else null")
    promotion_confidence: float | None = Field(
        description="Of a promotion: current_confidence of the original, else its type_confidence, 0..1; else null"
    )
    promotion_access_count: int | None = Field(
        description="Of a promotion: how often it had been found, from 0; else null"
    )
    promotion_conversation_count: int | None = Field(
        description="Of a promotion: conversations that the original was read from, from 0; else null"
    )
    config_snapshot: dict[str, Any] = Field(
        description="The thresholds in force: audit_level, contradiction_policy, dedup_exact, dedup_near; of a search "
        "also how it ranks, of jobs the settings that they go by, such as ageing"
    )
    metadata: dict[str, Any] = Field(
        description="Ids, counts and names of fields, depending on the operation; never memory text"
    )


class AuditPage(ResponseModel):
    """Newest first; send `next_cursor` back for the next page."""

    results: list[AuditItem] = Field(description="At most `limit` entries")
    next_cursor: NextCursor = None


@router.get("", summary="The audit log", responses=errors.documented(400, 401, 403, 503))
async def list_audit(
    caller: Auditor,
    res: ResourcesOf,
    operation: Annotated[Operation | None, Query(description="Only this operation; retrieve: every read")] = None,
    memory_type: Annotated[
        Subject | None, Query(description="Only on this; semantic: memories and changes of entities")
    ] = None,
    memory_id: Annotated[Id | None, Query()] = None,
    user_id: Text = None,
    session_id: Text = None,
    conversation_id: Annotated[Id | None, Query()] = None,
    channel: Text = None,
    request_id: Text = None,
    api_key_id: Annotated[Id | None, Query()] = None,
    since: Annotated[Time | None, Query(alias="from", description="From this moment on")] = None,
    until: Annotated[Time | None, Query(alias="to", description="Before this moment")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> AuditPage:
    """A change is logged when answered, a read (level `reads` or `verbose`) within a second."""
    wanted = AuditFilter(
        operation=operation,
        memory_type=memory_type,
        memory_id=memory_id,
        user_id=user_id,
        session_id=session_id,
        conversation_id=conversation_id,
        channel=channel,
        request_id=request_id,
        api_key_id=api_key_id,
        since=since,
        until=until,
    )
    after = cursors.decode(cursor)
    found = await workspaces.list_audit(caller.workspace_id, wanted, res, after=after, limit=limit + 1)
    page, last = cursors.cut(found, limit)
    more = cursors.encode(last.recorded_at, last.id) if last else None
    return AuditPage(results=[AuditItem.of(each) for each in page], next_cursor=more)
