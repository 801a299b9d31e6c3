"""Changing one memory over HTTP: PATCH, PUT, restore, promote."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Response

from service.api import errors
from service.api.change_models import (
    PatchFields,
    PatchMemoryRequest,
    PromotedMemoryResponse,
    PromoteMemoryRequest,
    PutMemoryRequest,
)
from service.api.deps import ResourcesOf, Writer
from service.api.memory_models import MemoryResponse, memory_fields, memory_response
from service.api.preconditions import OWN, ExpectedOf
from service.api.schemas import expiry
from service.api.writes import WriteOf, answer, send
from service.domain.access import Caller, Right
from service.domain.kinds import Importance, MemoryType
from service.domain.memory import Memory
from service.domain.request import StoredAnswer
from service.domain.revision import Moment, Revision
from service.errors import Forbidden, InvalidInput
from service.language import tags
from service.memory.promote import Promoted, promote
from service.memory.revise import restore, revise
from service.memory.transactions import memory_id

router = APIRouter(prefix="/v1/memories", tags=["memories"])

CHANGED = errors.documented(400, 401, 403, 404, 409, 412, 413, 422, 503)
SYSTEM: tuple[Moment, ...] = ("timestamp", "updated_at", "last_accessed")
MOMENTS: tuple[Moment, ...] = ("t_valid", "t_invalid", "expires_at", *SYSTEM)


@router.patch(
    "/{id}",
    operation_id="patch_memory",
    summary="Change parts of a memory",
    response_model=MemoryResponse,
    responses=CHANGED,
    dependencies=OWN,
)
async def patch_memory(
    id: str,
    body: PatchMemoryRequest,
    who: Writer,
    res: ResourcesOf,
    write: WriteOf,
    expected: ExpectedOf,
) -> Response:
    """What is not named stays. A new `content` passes PII and is embedded shortly after; by its words it is found at
    once. `id` never changes; `timestamp`, `updated_at` and `last_accessed` only with `allow_system_fields`."""
    change = revision(body, who, res.clock())
    context = write.answered_by(shown)
    memory = await revise(who.workspace_id, memory_id(id), change, res, context, expected=expected)
    return send(shown(memory))


@router.put(
    "/{id}",
    operation_id="put_memory",
    summary="Give a memory another text",
    response_model=MemoryResponse,
    responses=CHANGED,
    dependencies=OWN,
)
async def put_memory(
    id: str, body: PutMemoryRequest, who: Writer, res: ResourcesOf, write: WriteOf, expected: ExpectedOf
) -> Response:
    """Embedded before the answer, so a search finds it at once. Tags, metadata and importance stay."""
    change = Revision(text=body.text or body.content, embed_now=True)
    context = write.answered_by(shown)
    memory = await revise(who.workspace_id, memory_id(id), change, res, context, expected=expected)
    return send(shown(memory))


@router.post(
    "/{id}/restore",
    operation_id="restore_memory",
    summary="Bring an archived memory back",
    response_model=MemoryResponse,
    responses=errors.documented(401, 403, 404, 409, 412, 503),
    dependencies=OWN,
)
async def restore_memory(id: str, who: Writer, res: ResourcesOf, write: WriteOf, expected: ExpectedOf) -> Response:
    """One that is not archived stays as it is. What was deleted cannot be restored: 404."""
    memory = await restore(who.workspace_id, memory_id(id), res, write.answered_by(shown), expected=expected)
    return send(shown(memory))


@router.post(
    "/{id}/promote",
    operation_id="promote_memory",
    summary="Make a project's memory known in every channel",
    status_code=201,
    response_model=PromotedMemoryResponse,
    responses={
        200: {"model": PromotedMemoryResponse, "description": "It was known already"},
        **errors.documented(400, 401, 403, 404, 409, 412, 422, 503),
    },
    dependencies=OWN,
)
async def promote_memory(
    id: str,
    who: Writer,
    res: ResourcesOf,
    write: WriteOf,
    expected: ExpectedOf,
    body: PromoteMemoryRequest | None = None,
) -> Response:
    """A copy in `_global` for the same user, tied to the original by PROMOTED_FROM. Twice is the same as once."""
    reason, context = body.reason if body else None, write.answered_by(promoted)
    copy = await promote(who.workspace_id, memory_id(id), reason, res, context, expected=expected)
    return send(promoted(copy))


def revision(body: PatchFields, who: Caller, now: datetime) -> Revision:
    """What a PATCH asks for; raises InvalidInput or Forbidden for fields that the service keeps (C11)."""
    given = body.model_fields_set
    for name in SYSTEM:
        if name in given and not body.allow_system_fields:
            raise InvalidInput(f"{name}: is kept by the service; allow_system_fields lets you set it.", field=name)
    if body.allow_system_fields and not who.may(Right.SYSTEM):
        raise Forbidden(f"This key lacks the right {Right.SYSTEM}.", field="allow_system_fields")
    moments: dict[Moment, datetime | None] = {name: getattr(body, name) for name in MOMENTS if name in given}
    if {"ttl_s", "expires_at"} & given:
        moments["expires_at"] = expiry(body.ttl_s, body.expires_at, now)
    level, value = body.importance_level, body.importance
    return Revision(
        text=body.content,
        tags=tags.normalise(body.tags or ()) if "tags" in given else None,
        metadata=None if "metadata" in given and body.metadata is None else body.metadata or {},
        type=MemoryType(body.type) if body.type else None,
        type_confidence=body.confidence if body.type_confidence is None else body.type_confidence,
        fact_confidence=body.fact_confidence,
        importance=Importance.of_level(level) if level else None if value is None else Importance.of_value(value),
        moments=moments,
    )


def shown(found: Memory) -> StoredAnswer:
    return answer(200, memory_response(found))


def promoted(found: Promoted) -> StoredAnswer:
    body = PromotedMemoryResponse(**memory_fields(found.memory), promoted_from=found.original_id)
    return answer(201 if found.is_new else 200, body)
