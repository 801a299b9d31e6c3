"""Working memory over HTTP: what an agent holds in mind in one session, for an hour unless told otherwise."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from service.api import errors
from service.api.deps import AgentId, CallerOf, ChannelName, Reader, ResourcesOf, UserId, Writer
from service.api.preconditions import ExpectedOf
from service.api.schemas import DeletedCountResponse, Name
from service.api.working_models import (
    ActiveGoalResponse,
    AddWorkingTurnRequest,
    PushThoughtRequest,
    SessionDataResponse,
    SetActiveGoalRequest,
    SetSessionDataRequest,
    SetWorkingItemRequest,
    ThoughtList,
    ThoughtResponse,
    WorkingEntryResponse,
    WorkingItemResponse,
    WorkingMemoryResponse,
    WorkingTurnList,
    WorkingTurnResponse,
)
from service.api.writes import etag
from service.db.cognition import goals
from service.db.cognition import working as rows
from service.domain.scope import GLOBAL_CHANNEL
from service.domain.text import CleanText
from service.domain.working import WorkingEntry, WorkingKind, WorkingScope, WorkingTurn
from service.errors import InvalidInput, NotFound
from service.memory import working
from service.memory.working import ONLY
from service.resources import Resources


async def refuse_key(
    request: Request, given: Annotated[str | None, Header(alias="Idempotency-Key", include_in_schema=False)] = None
) -> None:
    """What is gone after a crash cannot promise an answer for a day (B5). Reads promise nothing."""
    if given is not None and request.method != "GET":
        raise InvalidInput(
            "Idempotency-Key is not taken here: working memory does not survive a crash. Repeat the write instead.",
            field="Idempotency-Key",
        )


router = APIRouter(prefix="/v1/working/{conversation_id}", tags=["working memory"], dependencies=[Depends(refuse_key)])

READ = errors.documented(400, 401, 403, 404, 503)
WRITE = errors.documented(400, 401, 403, 404, 412, 413, 422, 503)


async def _desk(
    conversation_id: Annotated[Name, Path(description="The id of a conversation, or any name of a session")],
    who: CallerOf,
    user_id: UserId = None,
    agent_id: AgentId = None,
    channel: ChannelName = None,
) -> WorkingScope:
    """The session of just these ids: a missing one is nobody's. The conversation stands for the run."""
    given = (user_id, agent_id)
    user, agent = given if any(given) else (who.user_id, who.agent_id)
    return WorkingScope(who.workspace_id, conversation_id, user, agent, channel or who.channel or GLOBAL_CHANNEL)


DeskOf = Annotated[WorkingScope, Depends(_desk)]
Key = Annotated[Name, Path(description="Up to 255 characters; it may hold slashes", examples=["cart"])]
Limit = Annotated[int, Query(ge=1, le=1_000)]


@router.get(
    "",
    operation_id="get_working_context",
    summary="All that a session holds",
    response_model=WorkingMemoryResponse,
    responses=errors.documented(400, 401, 403, 503),
)
async def get_working_context(desk: DeskOf, who: Reader, res: ResourcesOf) -> WorkingMemoryResponse:
    """A session that holds nothing has empty parts. Looking does not lengthen anything."""
    async with res.db.read(desk.workspace_id) as session:
        found = await rows.contents(session, desk, now=res.clock())
    return WorkingMemoryResponse(
        conversation_id=desk.conversation_id,
        user_id=desk.user_id,
        agent_id=desk.agent_id,
        channel=desk.channel,
        turns=[turn(each) for each in found.turns],
        thoughts=[thought(each) for each in found.thoughts],
        items={key: item(each) for key, each in found.items.items()},
        goal=active_goal(found.goal) if found.goal else None,
        session=session_data(found.session) if found.session else None,
    )


@router.delete(
    "",
    operation_id="clear_working_context",
    summary="Let go of all that a session holds",
    response_model=DeletedCountResponse,
    responses=errors.documented(400, 401, 403, 503),
)
async def clear_working_context(desk: DeskOf, who: Writer, res: ResourcesOf) -> DeletedCountResponse:
    """Again is fine: 0."""
    async with res.db.begin(desk.workspace_id) as session:
        await rows.lock(session, desk)
        return DeletedCountResponse(deleted=await rows.clear(session, desk))


@router.put(
    "/items/{key:path}",
    operation_id="set_working_item",
    summary="Hold a value under a key",
    response_model=WorkingItemResponse,
    status_code=201,
    responses={200: {"model": WorkingItemResponse, "description": "The key had a value, which is gone"}, **WRITE},
)
async def set_working_item(
    key: Key, body: SetWorkingItemRequest, desk: DeskOf, who: Writer, res: ResourcesOf, expected: ExpectedOf
) -> Response:
    """Redacted like everything that is kept. Above the session's cap the value that was not used for the longest time
    goes. With `If-Match` it is refused (412) when the value has changed or is gone."""
    note, is_new = await working.put(
        desk, WorkingKind.ITEM, key, body.value, res, ttl_s=body.ttl_seconds, expected=expected
    )
    return _send(item(note), 201 if is_new else 200)


@router.get(
    "/items/{key:path}",
    operation_id="get_working_item",
    summary="The value under a key",
    response_model=WorkingItemResponse,
    responses=READ,
)
async def get_working_item(key: Key, desk: DeskOf, who: Reader, res: ResourcesOf) -> Response:
    """Counts as a use; it does not make the value live longer."""
    return _send(item(await working.read(desk, WorkingKind.ITEM, key, res)))


@router.delete(
    "/items/{key:path}",
    operation_id="delete_working_item",
    summary="Let go of the value under a key",
    response_model=DeletedCountResponse,
    responses=errors.documented(400, 401, 403, 404, 412, 503),
)
async def delete_working_item(
    key: Key, desk: DeskOf, who: Writer, res: ResourcesOf, expected: ExpectedOf
) -> DeletedCountResponse:
    """404 when there is none, or it is over. With `If-Match` it is refused (412) when the value has changed."""
    await working.remove(desk, WorkingKind.ITEM, key, res, expected=expected)
    return DeletedCountResponse(deleted=1)


@router.post(
    "/turns",
    operation_id="add_working_turn",
    summary="Hold a turn",
    status_code=201,
    response_model=WorkingTurnResponse,
    responses=errors.documented(400, 401, 403, 413, 422, 503),
)
async def add_working_turn(body: AddWorkingTurnRequest, desk: DeskOf, who: Writer, res: ResourcesOf) -> Response:
    """Only here: the conversation itself does not get it. Above the session's cap the oldest turn goes."""
    said = WorkingTurn(body.role, CleanText(body.content), body.name, body.timestamp)
    return _send(turn(await working.add_turn(desk, said, res, ttl_s=body.ttl_seconds)), 201)


@router.get(
    "/turns",
    operation_id="list_working_turns",
    summary="The newest turns",
    response_model=WorkingTurnList,
    responses=errors.documented(400, 401, 403, 503),
)
async def list_working_turns(desk: DeskOf, who: Reader, res: ResourcesOf, limit: Limit = 10) -> WorkingTurnList:
    """Newest first; looking counts as no use."""
    async with res.db.read(desk.workspace_id) as session:
        found = await rows.latest(session, desk, WorkingKind.TURN, limit=limit, now=res.clock())
    return WorkingTurnList(results=[turn(each) for each in found])


@router.post(
    "/thoughts",
    operation_id="push_thought",
    summary="Hold a thought",
    status_code=201,
    response_model=ThoughtResponse,
    responses=errors.documented(400, 401, 403, 413, 422, 503),
)
async def push_thought(body: PushThoughtRequest, desk: DeskOf, who: Writer, res: ResourcesOf) -> Response:
    """Above the session's cap the oldest thought goes."""
    return _send(thought(await working.push_thought(desk, body.thought, res, ttl_s=body.ttl_seconds)), 201)


@router.get(
    "/thoughts",
    operation_id="list_thoughts",
    summary="The newest thoughts",
    response_model=ThoughtList,
    responses=errors.documented(400, 401, 403, 503),
)
async def list_thoughts(desk: DeskOf, who: Reader, res: ResourcesOf, limit: Limit = 10) -> ThoughtList:
    """Newest first; looking counts as no use."""
    async with res.db.read(desk.workspace_id) as session:
        found = await rows.latest(session, desk, WorkingKind.THOUGHT, limit=limit, now=res.clock())
    return ThoughtList(results=[thought(each) for each in found])


@router.put(
    "/goal",
    operation_id="set_active_goal",
    summary="Set what the session works on",
    response_model=ActiveGoalResponse,
    status_code=201,
    responses={200: {"model": ActiveGoalResponse, "description": "In the place of another goal"}, **WRITE},
)
async def set_active_goal(
    body: SetActiveGoalRequest, desk: DeskOf, who: Writer, res: ResourcesOf, expected: ExpectedOf
) -> Response:
    """The id must be of a goal that this session may see, else 404; without words of its own it lends its."""
    words = body.description
    if body.goal_id is not None:
        found = await _words_of(body.goal_id, desk, res)
        words = words or found
    value = {"goal_id": str(body.goal_id) if body.goal_id else None, "description": words}
    note, is_new = await working.put(
        desk, WorkingKind.GOAL, ONLY, value, res, ttl_s=body.ttl_seconds, expected=expected
    )
    return _send(active_goal(note), 201 if is_new else 200)


@router.get(
    "/goal",
    operation_id="get_active_goal",
    summary="What the session works on",
    response_model=ActiveGoalResponse,
    responses=READ,
)
async def get_active_goal(desk: DeskOf, who: Reader, res: ResourcesOf) -> Response:
    """404 when nothing is set, or it is over."""
    return _send(active_goal(await working.read(desk, WorkingKind.GOAL, ONLY, res)))


@router.put(
    "/session",
    operation_id="set_session_data",
    summary="Hold data of the session as a whole",
    response_model=SessionDataResponse,
    status_code=201,
    responses={200: {"model": SessionDataResponse, "description": "In the place of other data"}, **WRITE},
)
async def set_session_data(
    body: SetSessionDataRequest, desk: DeskOf, who: Writer, res: ResourcesOf, expected: ExpectedOf
) -> Response:
    """Redacted; the former data is gone. With `If-Match` it is refused (412) when somebody was faster."""
    note, is_new = await working.put(
        desk, WorkingKind.SESSION, ONLY, body.data, res, ttl_s=body.ttl_seconds, expected=expected
    )
    return _send(session_data(note), 201 if is_new else 200)


@router.get(
    "/session",
    operation_id="get_session_data",
    summary="Data of the session as a whole",
    response_model=SessionDataResponse,
    responses=READ,
)
async def get_session_data(desk: DeskOf, who: Reader, res: ResourcesOf) -> Response:
    """404 when there is none, or it is over."""
    return _send(session_data(await working.read(desk, WorkingKind.SESSION, ONLY, res)))


async def _words_of(goal_id: UUID, desk: WorkingScope, res: Resources) -> str:
    async with res.db.read(desk.workspace_id) as session:
        found = await goals.get(session, desk.workspace_id, goal_id)
    if found is None or (found.scope.user_id, found.scope.agent_id) != (desk.user_id, desk.agent_id):
        raise NotFound("goal_id: there is no goal with this id.", field="goal_id")
    return found.description


def _send(body: WorkingEntryResponse, status: int = 200) -> Response:
    return JSONResponse(body.model_dump(mode="json"), status, {"ETag": etag(body.version)})


def _held(note: WorkingEntry) -> dict[str, Any]:
    return {"version": note.version, "created_at": note.created_at, "expires_at": note.expires_at}


def item(note: WorkingEntry) -> WorkingItemResponse:
    return WorkingItemResponse(key=note.key, value=note.value, **_held(note))


def turn(note: WorkingEntry) -> WorkingTurnResponse:
    return WorkingTurnResponse(**note.value, **_held(note))


def thought(note: WorkingEntry) -> ThoughtResponse:
    return ThoughtResponse(thought=note.value, **_held(note))


def active_goal(note: WorkingEntry) -> ActiveGoalResponse:
    return ActiveGoalResponse(**note.value, **_held(note))


def session_data(note: WorkingEntry) -> SessionDataResponse:
    return SessionDataResponse(data=note.value, **_held(note))
