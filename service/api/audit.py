"""The audit log over HTTP."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query

from service.api import cursors, errors
from service.api.auth import Auditor
from service.api.deps import ResourcesOf
from service.api.wire import Id, Reply, Time
from service.db import audit
from service.db.audit import Filter, Logged
from service.errors import InvalidInput

router = APIRouter(prefix="/v1/audit", tags=["audit"])

Text = Annotated[str | None, Query(min_length=1, max_length=255)]


class AuditOut(Reply):
    """One operation. `metadata` holds ids, counts and thresholds, never memory text; `query_text` is redacted and there
    from level `reads` on."""

    id: Id
    recorded_at: Time
    operation: str
    memory_type: str | None
    affected_ids: list[Id]
    request_id: str | None
    api_key_id: Id | None
    user_id: str | None
    session_id: str | None
    conversation_id: Id | None
    source_channel: str | None
    target_channels: list[str]
    query_text: str | None
    result_count: int | None
    latency_ms: float | None
    success: bool
    error_message: str | None
    promoted_from_channel: str | None
    promotion_confidence: float | None
    promotion_access_count: int | None
    promotion_conversation_count: int | None
    config_snapshot: dict[str, Any]
    metadata: dict[str, Any]


class AuditPage(Reply):
    """Newest first; hand `next_cursor` back to read on."""

    results: list[AuditOut]
    next_cursor: str | None = None


@router.get(
    "",
    operation_id="list_audit",
    summary="Who did what, when?",
    response_model=AuditPage,
    responses=errors.documented(400, 401, 403, 503),
)
async def list_audit(
    who: Auditor,
    res: ResourcesOf,
    operation: Annotated[Text, Query(description="Such as store, update, delete, retrieve")] = None,
    memory_type: Annotated[Text, Query(description="Such as semantic, episodic, procedural")] = None,
    memory_id: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
    user_id: Text = None,
    session_id: Text = None,
    conversation_id: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
    channel: Text = None,
    request_id: Text = None,
    api_key_id: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
    since: Annotated[Time | None, Query(alias="from", description="From this moment on")] = None,
    until: Annotated[Time | None, Query(alias="to", description="Before this moment")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> AuditPage:
    """Needs the right `audit:read`. Changes are here when they are answered, reads (level `reads` or `verbose`) within
    a second."""
    wanted = Filter(
        operation=operation,
        memory_type=memory_type,
        memory_id=_id(memory_id, "memory_id"),
        user_id=user_id,
        session_id=session_id,
        conversation_id=_id(conversation_id, "conversation_id"),
        channel=channel,
        request_id=request_id,
        api_key_id=_id(api_key_id, "api_key_id"),
        since=since,
        until=until,
    )
    after = cursors.decode(cursor)
    async with res.db.read(who.workspace_id) as session:
        found = await audit.page(session, who.workspace_id, wanted, after=after, limit=limit + 1)
    page = found[:limit]
    more = cursors.encode(page[-1].recorded_at, page[-1].id) if len(found) > limit else None
    return AuditPage(results=[_shown(each) for each in page], next_cursor=more)


def _id(given: str | None, field: str) -> UUID | None:
    if given is None:
        return None
    try:
        return UUID(given)
    except ValueError:
        raise InvalidInput(f"{field}: must be a UUID.", field=field) from None


def _shown(found: Logged) -> AuditOut:
    return AuditOut(**{name: getattr(found, name) for name in AuditOut.model_fields})
