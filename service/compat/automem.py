"""The HTTP API of AutoMem, for its MCP server and other clients (`AUTOMEM_API_URL=…/v1/compat/automem`).

automem_scope.py determines whose memories these are; recall is in automem_recall.py.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from service.compat import automem_format
from service.compat.adapter_routes import (
    EVERY_METHOD,
    AdapterRoute,
    object_of,
    objects_in,
    only,
    present,
    read_numbered_page,
    refuse_other,
    whole_number,
)
from service.compat.automem_scope import ends_of, find_tagged, is_untouched, one, owner, read
from service.domain.access import Caller
from service.domain.errors import InvalidInput, NotFound, ServiceError
from service.domain.job import MAX_ATTEMPTS, WORKSPACE_JOBS
from service.domain.memory import Memory, StoreResult
from service.domain.moments import elapsed_ms
from service.domain.query import SortOrder
from service.domain.relation import Relation, RelationType, WalkOptions
from service.domain.request import Call, IdempotencyKey, Replay, StoredAnswer
from service.domain.sizes import MAX_BATCH_ITEMS, check_texts
from service.http.deps import Admin, CallerOf, Changer, Forgetter, Reader, ResourcesOf, Writer
from service.http.errors import AUTOMEM
from service.http.query_parameters import body_of
from service.http.reads import AuditReadOf, CountUseOf, with_budget
from service.http.schemas import iso
from service.http.writes import BatchCallOf, CallOf, UnkeyedCallOf, name_answer, of_item, send, sends
from service.intake.routes.store import prepare, store_memories
from service.intake.routes.store_models import StoreBatchRequest, StoreBatchResponse, StoreRequest
from service.intake.store import store
from service.jobs import jobs
from service.jobs.jobs import JobsOf
from service.jobs.routes.jobs import JobRunItem
from service.memories import reading
from service.memories.associate import associate
from service.memories.lifecycle import ForgottenMemory, forget, forget_many
from service.memories.revise import revise
from service.memories.routes.memories import revision
from service.memories.routes.memory_models import PatchMemoryRequest
from service.memories.routes.relations import CreateRelationRequest
from service.runtime.resources import Resources
from service.runtime.transactions import refuse_repeated

router = APIRouter(prefix=AUTOMEM, route_class=AdapterRoute, include_in_schema=False)

MOST_TAGGED: Final = 200
MOST_AT_ONCE: Final = 500
RETRIED_S: Final = 60.0
"""How long the same memory, stored again, counts as the same request: clients repeat a POST whose answer was lost."""

# -- health ------------------------------------------------------------------------------------------------------------


@router.get("/health")
async def health(request: Request) -> Response:
    """Needs no key, so it counts nothing. FalkorDB and Qdrant are one Postgres here."""
    state = request.app.state
    is_well = await state.probe.status() == "ok"
    known = "connected" if is_well else "disconnected"
    dimension = state.resources.embedder.dimension
    body = {
        "status": "healthy" if is_well else "unhealthy",
        "falkordb": known,
        "qdrant": known,
        "graph": "loxodon",
        "timestamp": iso(state.resources.clock()),
        "memory_count": None,
        "vector_count": None,
        "sync_status": "synced",
        "vector_dimensions": {"configured": dimension, "effective": dimension, "collection": dimension},
        "enrichment": {"status": "running"},
    }
    return JSONResponse(body, 200 if is_well else 503)


# -- storing -----------------------------------------------------------------------------------------------------------


@router.post("/memory")
async def store_memory(request: Request, caller: Writer, res: ResourcesOf, call: BatchCallOf) -> Response:
    """201, also for a repetition within a minute, which gets the first answer again if that memory is unchanged."""
    began, sent = time.perf_counter(), await object_of(request)
    given, warnings = automem_format.store_body(sent, res.embedder.dimension)
    body = body_of(StoreRequest, {**given, **owner(caller)})
    keyed = call if call.idempotency else _retry(call, caller, sent)
    try:
        await refuse_repeated(keyed, caller.workspace_id, res)
    except Replay as replay:
        if call.idempotency or await is_untouched(caller, replay.answer.body["memory_id"], res):
            raise
        keyed = call
    res = with_budget(res)
    draft, native = await prepare(body, caller, res)

    def answer(result: StoreResult) -> StoredAnswer:
        return _answer_store(result, native(result).body, body, warnings, elapsed_ms(began))

    return send(answer(await store(draft, res, keyed.with_serializer(answer))))


def _answer_store(
    result: StoreResult, native: Mapping[str, Any], body: StoreRequest, warnings: Sequence[str], took_ms: float
) -> StoredAnswer:
    (outcome,), shown = result.outcomes, native["results"][0]
    moment = iso(outcome.draft.timestamp)
    more = {"summarized": True, **present(shown, "original_length", "summarized_length")} if shown["summarized"] else {}
    status = "provided" if body.embedding is not None else shown["embedding"]
    answer_body = {
        "status": "success",
        "memory_id": shown["id"],
        "message": "Memory stored successfully",
        "stored_at": moment,
        "timestamp": moment,
        "updated_at": iso(body.updated_at or outcome.draft.timestamp),
        "last_accessed": iso(body.last_accessed or body.updated_at or outcome.draft.timestamp),
        "type": shown["type"],
        "confidence": shown["type_confidence"],
        "importance": shown["importance"],
        "tags": shown["tags"],
        "metadata": dict(outcome.draft.metadata),
        "qdrant": "queued" if status == "queued" else "stored",
        "embedding_status": status,
        "enrichment": "queued",
        "query_time_ms": took_ms,
        **more,
    }
    return StoredAnswer(201, {**answer_body, "warnings": [*warnings, *shown["warnings"]]} if warnings else answer_body)


def _retry(call: Call, caller: Caller, sent: Any) -> Call:
    """The request with an idempotency key derived from its body."""
    digest = hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()
    name = name_answer(caller, f"automem:{caller.key_id}:{digest}")
    whose = *caller.ids(owner(caller).get("user_id"), None, None), caller.channel(None)
    return replace(call, idempotency=IdempotencyKey(name, digest, RETRIED_S, whose))


async def _are_there(caller: Caller, done: StoreBatchResponse, res: Resources) -> bool:
    """Whether all memories of an answered batch still exist; if not, the batch is a new request."""
    ids = {item.results[0].id for item in done.results if item.error is None} - {None}
    return len(await read(caller, [each for each in ids if each is not None], res)) == len(ids)


@router.post("/memory/batch")
async def store_batch(request: Request, caller: Writer, res: ResourcesOf, call: BatchCallOf) -> Response:
    """Nothing is stored if one of them cannot be."""
    began, sent = time.perf_counter(), await object_of(request)
    items = []
    for index, each in enumerate(objects_in(sent, "memories", MOST_AT_ONCE)):
        try:
            fields, _ = automem_format.store_body(each, res.embedder.dimension)
            items.append(body_of(StoreRequest, {**fields, **owner(caller)}))
        except InvalidInput as exc:
            where = f"memories[{index}]"
            raise InvalidInput(f"{where}.{exc.detail}", field=f"{where}.{exc.field}") from None
    check_texts("memories", (item.content or "" for item in items))
    keyed = call if call.idempotency else _retry(call, caller, sent)
    ids: list[str] = []
    failed: list[dict[str, Any]] = []
    for begin in range(0, len(items), MAX_BATCH_ITEMS):
        part = items[begin : begin + MAX_BATCH_ITEMS]
        done = await store_memories(StoreBatchRequest(items=part), caller, res, _from(keyed, begin))
        if keyed is not call and not await _are_there(caller, done, res):
            done = await store_memories(StoreBatchRequest(items=part), caller, res, call)
        ids += [str(item.results[0].id) for item in done.results if item.error is None]
        failed += [
            {"index": begin + item.index, "message": item.error.detail}
            for item in done.results
            if item.error is not None
        ]
    body = {
        "status": "success" if not failed else "partial",
        "memory_ids": ids,
        "stored": len(ids),
        "failed": failed,
        "qdrant": "stored",
        "enrichment": "queued",
        "query_time_ms": elapsed_ms(began),
    }
    return JSONResponse(body, 201 if ids else 400)


def _from(call: Call, begin: int) -> Call:
    """The call for a later part of a batch, whose items are numbered from 0 again."""
    key = call.idempotency
    if key is None or begin == 0:
        return call
    return replace(call, idempotency=replace(key, key=hashlib.sha256(f"{key.key}:{begin}".encode()).hexdigest()))


# -- by id -------------------------------------------------------------------------------------------------------------


@router.get("/memory/by-tag")
async def list_by_tag(request: Request, caller: Reader, res: ResourcesOf) -> dict[str, Any]:
    """Memories with one of the tags, most important first."""
    asked = request.query_params
    wanted = _tags(request)
    limit = whole_number(asked.get("limit"), "limit", default=20, most=MOST_TAGGED)
    offset = whole_number(asked.get("offset"), "offset", default=0, least=0, most=10**9)
    page = await read_numbered_page(
        request, find_tagged(caller, wanted), caller, res, SortOrder("importance"), skip=offset, limit=limit
    )
    return {
        "status": "success",
        "tags": wanted,
        "count": len(page.memories),
        "limit": limit,
        "offset": offset,
        "has_more": page.total.value > offset + len(page.memories),
        "memories": [automem_format.memory_item(memory) for memory in page.memories],
    }


def _tags(request: Request) -> list[str]:
    wanted = automem_format.tags_in(request.query_params.getlist("tags"))
    if not wanted:
        raise InvalidInput("tags: name at least one tag.", field="tags")
    return wanted


@router.delete("/memory/by-tag")
async def delete_by_tag(request: Request, caller: Forgetter, res: ResourcesOf, call: CallOf) -> Response:
    """Deletes memories with one of the tags. The answer is stored with the last of them."""
    only(request, "tags", "api_key")
    wanted, count, last = _tags(request), 0, False

    def answer(forgotten: Sequence[ForgottenMemory]) -> StoredAnswer:
        total = count + sum(each.deleted for each in forgotten)
        return StoredAnswer(200, {"status": "success", "deleted_count": total, "tags": wanted})

    while True:
        page = await read_numbered_page(
            request, find_tagged(caller, wanted), caller, res, SortOrder(), skip=0, limit=MOST_AT_ONCE, may_cut=True
        )
        last = len(page.memories) < MOST_AT_ONCE and not page.is_cut
        own_call = call.with_serializer(answer) if last else replace(call, idempotency=None)
        forgotten = await forget_many(caller.workspace_id, [memory.id for memory in page.memories], res, own_call)
        if last:
            return send(answer(forgotten))
        count += sum(each.deleted for each in forgotten)


@router.get("/memory/{id}")
async def get_memory(id: str, caller: Reader, res: ResourcesOf, note: AuditReadOf, used: CountUseOf) -> dict[str, Any]:
    memory = await one(caller, id, res)
    note("get", memory.scope, [memory])
    used([memory])
    return {"status": "success", "memory": automem_format.memory_item(memory)}


def _updated(memory: Memory) -> dict[str, Any]:
    body = {"status": "success", "memory_id": str(memory.id), "message": "Memory updated successfully"}
    return {**body, "memory": automem_format.memory_item(memory)}


@router.patch("/memory/{id}")
@sends(_updated)
async def update_memory(id: str, request: Request, caller: Changer, res: ResourcesOf, call: CallOf) -> Memory:
    """A new text is found at once; metadata is merged key by key."""
    memory = await one(caller, id, res)
    change = revision(
        body_of(PatchMemoryRequest, automem_format.patch_body(await object_of(request))), caller, res.clock()
    )
    change = replace(change, embed_now=change.text is not None)
    return await revise(caller.workspace_id, memory.id, change, res, call)


def _deleted(forgotten: ForgottenMemory) -> dict[str, str]:
    return {"status": "success", "memory_id": str(forgotten.id), "message": "Memory deleted successfully"}


@router.delete("/memory/{id}")
@sends(_deleted)
async def delete_memory(id: str, caller: Forgetter, res: ResourcesOf, call: CallOf) -> ForgottenMemory:
    memory = await one(caller, id, res)
    forgotten = await forget(caller.workspace_id, memory.id, res, call)
    if forgotten.already_deleted:
        raise NotFound.of("memory")
    return forgotten


# -- relations ---------------------------------------------------------------------------------------------------------

OF_A_RELATION: Final = frozenset({"memory1_id", "memory2_id", "type", "strength", "associations"})


@router.post("/associate")
async def associate_memories(request: Request, caller: Writer, res: ResourcesOf, call: BatchCallOf) -> Response:
    """Creates one relation, or several under `associations`: 207 if some could not be created."""
    sent = await object_of(request)
    if "associations" not in sent:
        await refuse_repeated(call, caller.workspace_id, res)
        return JSONResponse(await _associate(sent, caller, res, call), 201)
    made: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for index, each in enumerate(objects_in(sent, "associations", MOST_AT_ONCE)):
        ends = {"index": index, **present(each, "memory1_id", "memory2_id", "type")}
        try:
            item = of_item(call, index)
            await refuse_repeated(item, caller.workspace_id, res)
            answer = await _associate(each, caller, res, item)
        except Replay as replay:
            answer = dict(replay.answer.body)
        except ServiceError as exc:
            failed.append({**ends, "error": exc.detail, "message": exc.detail})
            continue
        made.append({**ends, "type": answer["relation_type"], "strength": answer["strength"]})
    body = {
        "status": "partial_success" if failed else "success",
        "message": f"Created {len(made)} of {len(made) + len(failed)} associations",
        "created_count": len(made),
        "failed_count": len(failed),
        "succeeded": made,
        "failed": failed,
        "summary": {"requested": len(made) + len(failed), "created": len(made), "failed": len(failed)},
    }
    return JSONResponse(body, 207 if failed else 201)


async def _associate(sent: Mapping[str, Any], caller: Caller, res: Resources, call: Call) -> dict[str, Any]:
    source, target = ends_of(sent)
    kind = automem_format.relation_type(sent.get("type"))
    strength = automem_format.unit(sent.get("strength", 0.5), "strength")
    properties = {name: value for name, value in sent.items() if name not in OF_A_RELATION and value is not None}
    checked = body_of(
        CreateRelationRequest, {"target_id": target, "type": kind, "strength": strength, "properties": properties}
    )
    if len(await read(caller, [source, target], res)) < 2:
        raise NotFound.of("memory")
    asked = Relation(source, RelationType(kind), target, checked.strength, checked.properties)

    def answer(put: tuple[Relation, bool]) -> StoredAnswer:
        made = put[0]
        message = f"Association created between {source} and {target}"
        head = {"status": "success", "message": message, "relation_type": kind, "strength": made.strength}
        return StoredAnswer(201, {**made.properties, **head})

    return dict(answer(await associate(caller.workspace_id, asked, res, call.with_serializer(answer))).body)


@router.get("/memories/{id}/related")
async def related(id: str, request: Request, caller: Reader, res: ResourcesOf, note: AuditReadOf) -> dict[str, Any]:
    """Nearest first, then strongest."""
    asked, start = request.query_params, await one(caller, id, res)
    named = [each.upper() for each in automem_format.words(asked.getlist("relationship_types"))]
    types = tuple(RelationType(name) for name in named if name in set(RelationType))
    depth = whole_number(asked.get("max_depth"), "max_depth", default=1, most=3)
    limit = whole_number(asked.get("limit"), "limit", default=5, most=MOST_TAGGED)
    options = WalkOptions(depth, limit, types=types, include_archived=False)
    _, walk, memories, _ = await reading.walk(caller.workspace_id, start.id, options, res, skip=0, detail="full")
    near = (memories.get(step.memory_id) for step in walk.steps)
    shown = [memory for memory in near if isinstance(memory, Memory)]
    note("related", start.scope, shown, start=str(start.id), depth=depth, limit=limit)
    return {
        "status": "success",
        "memory_id": str(start.id),
        "count": len(shown),
        "related_memories": [automem_format.memory_item(memory) for memory in shown],
        "relationship_types": [str(relation_type) for relation_type in types],
        "max_depth": depth,
        "limit": limit,
    }


# -- upkeep ------------------------------------------------------------------------------------------------------------


@router.post("/consolidate")
async def consolidate(request: Request, caller: Admin, res: ResourcesOf, call: UnkeyedCallOf) -> dict[str, Any]:
    """Queues the corresponding jobs of this service; with dry_run it only names them."""
    sent = await object_of(request) if getattr(request.state, "json", None) else {}
    mode, dry_run = str(sent.get("mode") or "full").lower(), sent.get("dry_run", True)
    if mode not in automem_format.MODES:
        raise InvalidInput(f"mode: must be one of {', '.join(sorted(automem_format.MODES))}.", field="mode")
    steps: dict[str, Any] = {}
    for name in automem_format.MODES[mode]:
        steps[name] = {"status": "dry_run"}
        if not dry_run:
            job = await jobs.run(JobsOf(caller), name, res, call)
            steps[name] = {"status": job.state, "job_id": str(job.id)}
    done = {"mode": mode, "dry_run": bool(dry_run), "success": True, "started_at": iso(res.clock()), "steps": steps}
    return {"status": "success", "consolidation": done}


@router.get("/consolidate/status")
async def consolidation_status(caller: Admin, res: ResourcesOf) -> dict[str, Any]:
    next_runs, past = {}, []
    for name in WORKSPACE_JOBS:
        described = await jobs.describe(JobsOf(caller), name, res, last_runs=3)
        next_runs[name] = iso(described.next_run) if described.next_run else None
        past += [{"task": name, **JobRunItem.of(run).model_dump(mode="json")} for run in described.runs[:3]]
    return {"status": "success", "next_runs": next_runs, "history": past, "tasks": list(WORKSPACE_JOBS)}


@router.get("/enrichment/status")
async def enrichment_status(caller: Admin, res: ResourcesOf) -> dict[str, Any]:
    described = await jobs.describe(JobsOf(caller), "enrich", res, last_runs=0)
    by_state = {count.state: count.jobs for count in described.states}
    waiting = by_state.get("queued", 0) + by_state.get("failed", 0)
    return {
        "status": "running",
        "queue_size": waiting,
        "pending": waiting,
        "inflight": by_state.get("running", 0),
        "failed": by_state.get("dead", 0),
        "max_attempts": MAX_ATTEMPTS,
        "stats": {"queued": waiting, "running": by_state.get("running", 0), "dead": by_state.get("dead", 0)},
    }


@router.post("/admin/reembed")
async def reembed(caller: Admin) -> dict[str, Any]:
    """Nothing to do: a job of the service makes missing vectors (`/v1/jobs/embed`)."""
    message = "Vectors that are missing are made in the background; see GET /v1/jobs/embed."
    return {"status": "complete", "processed": 0, "failed": 0, "total": 0, "message": message}


@router.post("/admin/sync")
async def sync(caller: Admin) -> dict[str, Any]:
    return {"status": "complete", "synced": 0, "missing": 0, "message": "There is only one database to sync."}


@router.api_route("/{path:path}", methods=EVERY_METHOD)
async def other(path: str, caller: CallerOf) -> None:
    refuse_other(path, automem_format.NOT_OFFERED)
