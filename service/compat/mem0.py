"""The API of mem0's platform, for `MemoryClient(host="…/v1/compat/mem0")` of its clients in Python and JavaScript."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final
from uuid import UUID

from fastapi import APIRouter, Request, Response
from uuid_utils.compat import uuid7

from service.compat import mem0_format
from service.compat.adapter_routes import (
    EVERY_METHOD,
    AdapterRoute,
    object_of,
    only,
    present,
    read_numbered_page,
    refuse_other,
)
from service.domain.access import Caller
from service.domain.errors import InvalidInput, NotFound, ScopeMissing, ServiceError
from service.domain.filters import uuid_or_none
from service.domain.memory import Hit, Memory, Revision, StoreResult
from service.domain.query import SortOrder
from service.domain.request import Call, Replay, StoredAnswer
from service.domain.scope import Extent
from service.domain.sizes import MAX_BATCH_ITEMS, MAX_ITEMS, check_texts
from service.erasure.forget_scope import forget_scope
from service.http import cursors
from service.http.deps import CallerOf, Changer, Deleter, PrimaryReader, Reader, ResourcesOf, Writer, scope_of
from service.http.errors import MEM0
from service.http.narrowing import NarrowingFields
from service.http.preconditions import uuid_of
from service.http.query_parameters import body_of, split
from service.http.reads import AuditReadOf, CountUseOf, with_budget
from service.http.schemas import ScopeDeletionResponse, iso
from service.http.writes import BatchCallOf, CallOf, of_item, send, sends
from service.intake.conversation import ConversationDraft
from service.intake.deferred import accept, keep_finished, list_operations, progress
from service.intake.routes.store import prepare
from service.intake.routes.store_models import StoreRequest
from service.intake.store import store
from service.memories import reading
from service.memories.lifecycle import ForgottenMemory, forget, forget_many
from service.memories.revise import revise
from service.memories.routes.memories import revision
from service.memories.routes.memory_models import PatchMemoryRequest
from service.runtime.resources import Resources
from service.runtime.transactions import refuse_repeated
from service.search.routes.search import run_search
from service.search.routes.search_models import SearchRequest
from service.tenants import workspaces
from service.tenants.routes.scopes import ScopeItem, list_scopes

router = APIRouter(prefix=MEM0, route_class=AdapterRoute, include_in_schema=False)

PAGE_SIZE: Final = 100
MOST_ENTITIES: Final = 10_000


@router.get("/v1/ping")
async def ping(caller: CallerOf) -> dict[str, Any]:
    """Clients refuse to start without an organization and a project: both are the workspace."""
    workspace = str(caller.workspace_id)
    return {"status": "ok", "org_id": workspace, "project_id": workspace, "user_email": None}


# -- adding ------------------------------------------------------------------------------------------------------------


@router.post("/v1/memories")
@router.post("/v3/memories/add")
async def add(request: Request, caller: Writer, res: ResourcesOf, call: CallOf) -> Any:
    """With a language model the facts are read later unless async_mode is false: the answer is PENDING, and the event
    shows when they are stored. Without one the facts are in the answer: SUCCEEDED."""
    sent = await object_of(request)
    given, unused = mem0_format.conversation(sent)
    body = body_of(StoreRequest, given)
    own = with_budget(res)
    draft, serialize = await prepare(body, caller, own, unused)
    if mem0_format.yes_or_no(sent, "async_mode") is not False and body.infer and res.llm is not None:
        assert isinstance(draft, ConversationDraft), "it is made of messages"
        return send(_pending(await accept(draft, res, call.with_serializer(_pending))))
    event_id = uuid7()

    def added(result: StoreResult) -> StoredAnswer:
        return _answer_add(event_id, serialize(result).body)

    answer = added(await store(draft, own, call.with_serializer(added)))
    await _keep_event(caller, event_id, answer, res)
    return send(answer)


def _pending(operation_id: UUID) -> StoredAnswer:
    message = "The messages are stored and memories are being created; the event shows when this is done."
    return StoredAnswer(200, {"message": message, "status": "PENDING", "event_id": str(operation_id)})


def _answer_add(event_id: UUID, stored: Mapping[str, Any]) -> StoredAnswer:
    results = [mem0_format.added_item(each) for each in stored["results"] if each["event"] != "NONE"]
    body = {"message": "Memories were created.", "status": "SUCCEEDED", "event_id": str(event_id), "results": results}
    return StoredAnswer(200, {**body, "warnings": stored["warnings"]})


async def _keep_event(caller: Caller, event_id: UUID, answer: StoredAnswer, res: Resources) -> None:
    """Keeps an event for a finished add, since clients ask for it. It contains no text."""
    made = [{"event": each["event"], "id": each["id"]} for each in answer.body["results"]]
    result = {"results": made, "warnings": answer.body["warnings"]}
    await keep_finished(caller.workspace_id, event_id, result, res)


@router.get("/v1/events")
async def list_events(request: Request, caller: PrimaryReader, res: ResourcesOf) -> dict[str, Any]:
    """Events of adds and of long deletions, newest first."""
    page, size = mem0_format.page(request.query_params, size=PAGE_SIZE, most=PAGE_SIZE)
    records = await list_operations(caller.workspace_id, res, skip=size * (page - 1), limit=size + 1)
    made = [each for operation in records[:size] for each in mem0_format.made_by(operation)]
    texts, _ = await reading.get_items(caller.workspace_id, made, "lean", res)
    results = [mem0_format.event_item(operation, texts) for operation in records[:size]]
    return {"count": len(results), **_around(request, page, more=len(records) > size), "results": results}


@router.get("/v1/event/{id}")
@router.get("/v1/events/{id}")
async def get_event(id: str, caller: PrimaryReader, res: ResourcesOf) -> dict[str, Any]:
    """An event; they are kept for a week."""
    operation = await progress(caller.workspace_id, uuid_of(id, "event"), res, "event")
    texts, _ = await reading.get_items(caller.workspace_id, mem0_format.made_by(operation), "lean", res)
    return mem0_format.event_item(operation, texts)


# -- finding -----------------------------------------------------------------------------------------------------------


@router.post("/v1/memories/search")
@router.post("/v2/memories/search")
@router.post("/v3/memories/search")
async def search(request: Request, caller: Reader, res: ResourcesOf) -> dict[str, Any]:
    """`threshold` applies to the score here, and the keywords of a query always count."""
    sent = await object_of(request)
    given = mem0_format.search_body(sent, MAX_ITEMS)
    hits: list[Hit] = []
    for scope in mem0_format.scopes(sent):
        body = body_of(SearchRequest, {**given, **scope, "filters": mem0_format.narrow(sent, scope)})
        _, result = await run_search(request, body, caller, res)
        hits += result.hits
    best = sorted(hits, key=lambda hit: -hit.score)[: given["limit"]]
    return {
        "results": [
            mem0_format.choose_fields(mem0_format.memory_item(hit.whole, score=min(hit.score, 1.0)), sent)
            for hit in best
        ]
    }


@router.post("/v2/memories")
@router.post("/v3/memories")
async def get_all(request: Request, caller: Reader, res: ResourcesOf) -> dict[str, Any]:
    return await _list_memories(request, await object_of(request), caller, res)


@router.get("/v1/memories")
async def get_all_by_query(request: Request, caller: Reader, res: ResourcesOf) -> dict[str, Any]:
    asked = request.query_params
    lists = {name: split(asked.getlist(name), name) for name in ("categories", "fields") if name in asked}
    return await _list_memories(request, {**asked, **lists}, caller, res)


async def _list_memories(request: Request, sent: Mapping[str, Any], caller: Caller, res: Resources) -> dict[str, Any]:
    """Newest first. Several users are read one after the other from the first on, and cut to the page."""
    page, size = mem0_format.page({**sent, **request.query_params}, size=PAGE_SIZE, most=MAX_ITEMS)
    wanted = mem0_format.scopes(sent)
    alone = len(wanted) == 1
    skip, limit = (size * (page - 1), size) if alone else (0, size * page)
    listed: list[Memory] = []
    total = 0
    for scope in wanted:
        given = {"categories": sent.get("categories") or [], "filters": mem0_format.narrow(sent, scope)}
        body = body_of(NarrowingFields, {**given, **scope})
        part = await read_numbered_page(request, body, caller, res, SortOrder("timestamp"), skip=skip, limit=limit)
        listed += part.memories
        total += part.total.value
    if not alone:
        listed = sorted(listed, key=lambda each: each.timestamp, reverse=True)[size * (page - 1) :][:size]
    return {
        "count": total,
        **_around(request, page, more=total > size * page),
        "results": [mem0_format.choose_fields(mem0_format.memory_item(memory), sent) for memory in listed],
    }


@router.get("/v1/memories/{id}")
async def get(id: str, caller: Reader, res: ResourcesOf, note: AuditReadOf, used: CountUseOf) -> dict[str, Any]:
    memory = await reading.get(caller.workspace_id, uuid_of(id), res, valid_at=None, as_of=None)
    note("get", memory.scope, [memory])
    used([memory])
    return mem0_format.memory_item(memory)


@router.get("/v1/memories/{id}/history")
async def get_history(id: str, request: Request, caller: Reader, res: ResourcesOf) -> list[dict[str, Any]]:
    """Oldest first; also for a deleted memory. Whole, or the page that is asked for."""
    asked = request.query_params
    number, size = mem0_format.page(asked, size=MOST_ENTITIES, most=MOST_ENTITIES)
    skip = size * (number - 1), 0
    entries, _ = await reading.changes(caller.workspace_id, uuid_of(id), res, skip=skip, limit=size + 1)
    page, more = cursors.cut(entries, size)
    if more and (len(page) < size or "page_size" not in asked):
        detail = f"page_size: the first {len(page)} changes fill the answer; ask for fewer at once."
        raise InvalidInput(detail, field="page_size")
    return [mem0_format.history_entry(entry) for entry in page]


# -- changing ----------------------------------------------------------------------------------------------------------


class ForeignPatch(PatchMemoryRequest):
    """A patch whose metadata may have any keys, as in an add."""

    reserves_names: ClassVar = False


@router.put("/v1/memories/{id}")
@sends(mem0_format.memory_item)
async def update(id: str, request: Request, caller: Changer, res: ResourcesOf, call: CallOf) -> Memory:
    """A new text is found at once; metadata is merged key by key."""
    change = _revision(await object_of(request), caller, res)
    return await revise(caller.workspace_id, uuid_of(id), change, res, call)


def _memory_answer(memory: Memory) -> StoredAnswer:
    return StoredAnswer(200, mem0_format.memory_item(memory))


def _revision(sent: Mapping[str, Any], caller: Caller, res: Resources) -> Revision:
    change = revision(body_of(ForeignPatch, mem0_format.patch_body(sent)), caller, res.clock())
    return replace(change, embed_now=change.text is not None)


@router.put("/v1/batch")
async def batch_update(request: Request, caller: Changer, res: ResourcesOf, call: BatchCallOf) -> dict[str, Any]:
    """Updates one after the other; if none succeeds, the answer is the first error."""
    items = mem0_format.items(await object_of(request), MAX_BATCH_ITEMS)
    check_texts("memories", (text for each in items if isinstance(text := each.get("text"), str)))
    failed: list[tuple[str, ServiceError]] = []
    for index, item in enumerate(items):
        item_call = of_item(call, index).with_serializer(_memory_answer)
        try:
            await refuse_repeated(item_call, caller.workspace_id, res)
            await revise(caller.workspace_id, uuid_of(item["memory_id"]), _revision(item, caller, res), res, item_call)
        except Replay:
            pass  # done before
        except ServiceError as exc:
            failed.append((item["memory_id"], exc))
    if len(failed) == len(items):
        raise failed[0][1]
    message = f"Successfully updated {len(items) - len(failed)} memories"
    return {"message": message, "failed": [{"memory_id": each, "detail": exc.detail} for each, exc in failed]}


@router.post("/v1/feedback")
async def feedback(request: Request, caller: Changer, res: ResourcesOf, call: CallOf) -> Any:
    """Stored with the memory, shown, and can be filtered by; it does not change the ranking."""
    sent = await object_of(request)
    rating = sent.get("feedback")
    if rating not in (None, "POSITIVE", "NEGATIVE", "VERY_NEGATIVE"):
        detail = "feedback: must be POSITIVE, NEGATIVE, VERY_NEGATIVE, or null to take it back."
        raise InvalidInput(detail, field="feedback")
    kept = {"feedback": rating, "feedback_reason": sent.get("feedback_reason") if rating else None}
    change = revision(body_of(PatchMemoryRequest, {"metadata": kept}), caller, res.clock())
    if not isinstance(sent.get("memory_id"), str):
        raise InvalidInput("memory_id: is missing.", field="memory_id")
    wanted = uuid_of(sent["memory_id"])

    def answer(memory: Memory) -> StoredAnswer:
        return StoredAnswer(200, {"id": str(memory.id), "memory_id": str(memory.id), **kept})

    return send(answer(await revise(caller.workspace_id, wanted, change, res, call.with_serializer(answer))))


# -- deleting ----------------------------------------------------------------------------------------------------------


def _deleted(_: ForgottenMemory) -> dict[str, str]:
    return {"message": "Memory deleted successfully!"}


@router.delete("/v1/memories/{id}")
@sends(_deleted)
async def delete(id: str, request: Request, caller: Deleter, res: ResourcesOf, call: CallOf) -> ForgottenMemory:
    only(request, "org_id", "project_id", "delete_linked", "source", "api_key")
    if request.query_params.get("delete_linked", "false").lower() == "true":
        detail = (
            "delete_linked: earlier versions of this memory are deleted with it; delete other memories by their own "
            "ids (GET /v1/memories/{id}/relations lists them)."
        )
        raise InvalidInput(detail, field="delete_linked")
    forgotten = await forget(caller.workspace_id, uuid_of(id), res, call)
    if forgotten.already_deleted:
        raise NotFound.of("memory")
    return forgotten


def _deleted_all(forgotten: ScopeDeletionResponse) -> dict[str, str]:
    return {"message": "Memories deleted successfully!", **_event_of(forgotten)}


def _deleted_entity(forgotten: ScopeDeletionResponse) -> dict[str, str]:
    return {"message": "Entity deleted successfully.", **_event_of(forgotten)}


def _event_of(forgotten: ScopeDeletionResponse) -> dict[str, str]:
    return {"event_id": str(forgotten.operation_id), "status": "PENDING"} if forgotten.operation_id else {}


@router.delete("/v1/memories")
@sends(_deleted_all)
async def delete_all(request: Request, caller: Deleter, res: ResourcesOf, call: CallOf) -> ScopeDeletionResponse:
    """Needs at least one user, agent or run: never deletes everybody's memories."""
    only(request, *mem0_format.ENTITIES, "app_id", "filters", "org_id", "project_id", "source", "api_key")
    named = {
        **mem0_format.parse_repr(request.query_params.get("filters")),
        **present(request.query_params, *mem0_format.ENTITIES),
    }
    if "app_id" in request.query_params or named.keys() - set(mem0_format.ENTITIES):
        detail = (
            "filters: a deletion is limited by user_id, agent_id and run_id alone; others are deleted by their ids."
        )
        raise InvalidInput(detail, field="filters")
    if not named:
        raise ScopeMissing
    return await _forget(named, caller, res, call)


async def _forget(named: Mapping[str, str], caller: Caller, res: Resources, call: Call) -> ScopeDeletionResponse:
    for name, value in named.items():
        if value == "*":
            detail = f"{name}: * would delete everyone's memories; name one, or use POST /v1/reset for all of them."
            raise InvalidInput(detail, field=name)
    body = body_of(NarrowingFields, dict(named))  # checks the names
    scope = scope_of(caller, body.scope_ids)
    return await forget_scope(Extent(scope, caller.own_channel), res, call)


@router.delete("/v1/batch")
async def batch_delete(request: Request, caller: Deleter, res: ResourcesOf, call: CallOf) -> Response:
    """All in one transaction; unknown ids, and what is no id, do not prevent the others."""
    named = dict.fromkeys(item["memory_id"] for item in mem0_format.items(await object_of(request), MAX_BATCH_ITEMS))
    ids = [each for name in named if (each := uuid_or_none(name))]
    no_ids = [name for name in named if uuid_or_none(name) is None]

    def deleted(forgotten: list[ForgottenMemory]) -> StoredAnswer:
        count = sum(item.deleted for item in forgotten)
        unknown = [str(item.id) for item in forgotten if not item.deleted]
        message = f"Successfully deleted {count} memories"
        return StoredAnswer(200, {"message": message, "not_found": [*unknown, *no_ids]})

    forgotten = await forget_many(caller.workspace_id, list(dict.fromkeys(ids)), res, call.with_serializer(deleted))
    return send(deleted(forgotten))


# -- entities ----------------------------------------------------------------------------------------------------------


@router.get("/v1/entities")
async def entities(request: Request, caller: Reader, res: ResourcesOf) -> dict[str, Any]:
    """Users, agents and runs that have memories; apps are not distinguished."""
    items: list[ScopeItem] = []
    cursor: str | None = None
    while len(items) < MOST_ENTITIES:
        page = await list_scopes(caller, res, cursors.Cursor("", cursor), limit=1_000)
        items += page.results
        if (cursor := page.next_cursor) is None:
            break
    number, size = mem0_format.page(request.query_params, size=MOST_ENTITIES, most=MOST_ENTITIES)
    results = [
        {
            "id": item.id,
            "name": item.id,
            "type": item.type,
            "total_memories": item.memories,
            "created_at": iso(item.first_used),
            "updated_at": iso(item.last_used),
        }
        for item in items[size * (number - 1) :][:size]
    ]
    return {
        "count": len(items),
        **_around(request, number, more=len(items) > size * number),
        "results": results,
    }


@router.delete("/v1/entities/{type}/{name:path}")
@router.delete("/v2/entities/{type}/{name:path}")
@sends(_deleted_entity)
async def delete_entity(
    type: str, name: str, request: Request, caller: Deleter, res: ResourcesOf, call: CallOf
) -> ScopeDeletionResponse:
    only(request, "org_id", "project_id", "source", "api_key")
    if type not in ("user", "agent", "run"):
        raise InvalidInput("type: must be user, agent or run; apps are not distinguished.", field="type")
    return await _forget({f"{type}_id": name}, caller, res, call)


# -- the rest ----------------------------------------------------------------------------------------------------------


@router.get("/api/v1/orgs/organizations/{org}/projects/{project}")
async def get_project(org: str, project: str, request: Request, caller: CallerOf, res: ResourcesOf) -> dict[str, Any]:
    """The workspace, which has no instructions or categories."""
    workspace = str(caller.workspace_id)
    details = {
        "id": workspace,
        "org_id": workspace,
        "project_id": workspace,
        "name": (await workspaces.read(caller.workspace_id, res)).name,
        "custom_instructions": None,
        "custom_categories": None,
    }
    wanted = [part for each in request.query_params.getlist("fields") for part in each.split(",")]
    return {name: details.get(name) for name in wanted} if wanted else details


def _around(request: Request, page: int, *, more: bool) -> dict[str, str | None]:
    """The URLs of the next and the previous page."""
    return {
        "next": str(request.url.include_query_params(page=page + 1)) if more else None,
        "previous": str(request.url.include_query_params(page=page - 1)) if page > 1 else None,
    }


@router.api_route("/{path:path}", methods=EVERY_METHOD)
async def other(path: str, caller: CallerOf) -> None:
    refuse_other(path, mem0_format.NOT_OFFERED)
