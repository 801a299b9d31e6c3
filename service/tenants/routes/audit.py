"""Route for the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from service.domain.request import Operation, Subject
from service.http import cursors
from service.http.deps import Auditor, CursorOf, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.schemas import Id, NextCursor, OfUser, ResponseModel, Time
from service.tenants import workspaces

router = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=JsonRoute)

Text = Annotated[str | None, Query(min_length=1, max_length=255)]


class AuditItem(ResponseModel):
    """One operation, without memory text."""

    id: Id = Field(description="UUID of the entry")
    recorded_at: Time = Field(
        description="When it was written: for changes in their transaction, for reads within a second"
    )
    operation: str = Field(description="The operation; one of the values of the parameter `operation`")
    memory_type: str | None = Field(
        description="Kind of object; one of the values of the parameter `memory_type`; null: unknown"
    )
    affected_ids: list[Id] = Field(
        description="UUIDs of the objects changed or found; empty if a whole scope or workspace was affected"
    )
    request_id: str | None = Field(
        description="X-Request-ID of the request; for jobs it starts with job: or operation:; null: unknown"
    )
    api_key_id: Id | None = Field(description="UUID of the key of the request; null: a job")
    user_id: OfUser
    session_id: str | None = Field(
        description="The `session_id` of a store, else X-Session-Id of the request; null: none"
    )
    conversation_id: Id | None = Field(description="UUID of the conversation opened, changed or extended; null: none")
    source_channel: str | None = Field(description="Channel of the object, or of the request; null: none")
    target_channels: list[str] = Field(
        description="For reads, the channels searched; empty for all channels, and for changes"
    )
    query_text: str | None = Field(description="For reads at level `reads` or `verbose`, the redacted query; else null")
    result_count: int | None = Field(description="For reads, the number of results; else null")
    latency_ms: float | None = Field(description="For reads, the duration in milliseconds; else null")
    success: bool = Field(description="Always true: failed operations are not audited")
    error_message: str | None = Field(description="Always null: failed operations are not audited")
    promoted_from_channel: str | None = Field(description="For promotions, the channel of the original; else null")
    promotion_confidence: float | None = Field(
        description="For promotions, current_confidence of the original, or its type_confidence, 0..1; else null"
    )
    promotion_access_count: int | None = Field(
        description="For promotions, how often the original had been found; else null"
    )
    promotion_conversation_count: int | None = Field(
        description="For promotions, the number of conversations the original was extracted from; else null"
    )
    config_snapshot: dict[str, Any] = Field(
        description="The settings in force: audit_level, contradiction_policy, dedup_exact, dedup_near; for searches "
        "also the ranking, for jobs their own settings"
    )
    metadata: dict[str, Any] = Field(
        description="Ids, counts and names of fields, depending on the operation; never memory text"
    )


class AuditPage(ResponseModel):
    """Newest first; pass `next_cursor` as `cursor` for the next page."""

    results: list[AuditItem] = Field(description="At most `limit` entries")
    next_cursor: NextCursor = None


@router.get("", summary="List the audit log")
async def list_audit(
    caller: Auditor,
    res: ResourcesOf,
    cursor: CursorOf,
    operation: Annotated[Operation | None, Query(description="Only this operation; retrieve: every read")] = None,
    memory_type: Annotated[
        Subject | None, Query(description="Only this kind of object; semantic: memories and changes of entities")
    ] = None,
    memory_id: Annotated[Id | None, Query()] = None,
    user_id: Text = None,
    session_id: Text = None,
    conversation_id: Annotated[Id | None, Query()] = None,
    channel: Text = None,
    request_id: Text = None,
    api_key_id: Annotated[Id | None, Query()] = None,
    since: Annotated[Time | None, Query(alias="from", description="Only entries at or after this moment")] = None,
    until: Annotated[Time | None, Query(alias="to", description="Only entries before this moment")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> AuditPage:
    """Changes are logged before the response, reads (at level `reads` or `verbose`) within a second."""
    equal = {
        "operation": operation,
        "memory_type": memory_type,
        "user_id": user_id,
        "session_id": session_id,
        "conversation_id": conversation_id,
        "source_channel": channel,
        "request_id": request_id,
        "api_key_id": api_key_id,
    }
    more: dict[str, Any] = {"memory_id": memory_id, "since": since, "until": until}
    after = cursor.moment_and_id()
    entries = await workspaces.list_audit(caller.workspace_id, equal, res, after=after, limit=limit + 1, **more)
    page, last = cursors.cut(entries, limit)
    next_cursor = cursor.pack(last["recorded_at"], last["id"]) if last else None
    return AuditPage(results=[AuditItem(**entry) for entry in page], next_cursor=next_cursor)
