"""Working memory over HTTP: what an agent holds in mind in one session, for an hour unless told otherwise."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from service.api import errors, replies
from service.api import working_models as wire
from service.api.auth import CallerOf, Reader, Writer
from service.api.deps import AgentId, ChannelName, ResourcesOf, UserId
from service.api.preconditions import ExpectedOf
from service.api.wire import Name
from service.db.cognition import goals
from service.db.cognition import working as rows
from service.domain.scope import GLOBAL_CHANNEL
from service.domain.text import CleanText
from service.domain.working import Desk, Kind, Note, Spoken
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
) -> Desk:
    """The session of just these ids: a missing one is nobody's. The conversation stands for the run."""
    given = (user_id, agent_id)
    user, agent = given if any(given) else (who.user_id, who.agent_id)
    return Desk(who.workspace_id, conversation_id, user, agent, channel or who.channel or GLOBAL_CHANNEL)


DeskOf = Annotated[Desk, Depends(_desk)]
Key = Annotated[Name, Path(description="Up to 255 characters; it may hold slashes", examples=["cart"])]
Limit = Annotated[int, Query(ge=1, le=1_000)]


@router.get(
    "",
    operation_id="get_working_context",
    summary="All that a session holds",
    response_model=wire.MindOut,
    responses=errors.documented(400, 401, 403, 503),
)
async def get_working_context(desk: DeskOf, who: Reader, res: ResourcesOf) -> wire.MindOut:
    """A session that holds nothing has empty parts. Looking does not lengthen anything."""
    async with res.db.read(desk.workspace_id) as session:
        found = await rows.mind(session, desk, now=res.clock())
    return wire.MindOut(
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
    response_model=wire.ClearedOut,
    responses=errors.documented(400, 401, 403, 503),
)
async def clear_working_context(desk: DeskOf, who: Writer, res: ResourcesOf) -> wire.ClearedOut:
    """Again is fine: 0."""
    async with res.db.begin(desk.workspace_id) as session:
        await rows.lock(session, desk)
        return wire.ClearedOut(deleted=await rows.clear(session, desk))


@router.put(
    "/items/{key:path}",
    operation_id="set_working_item",
    summary="Hold a value under a key",
    response_model=wire.ItemOut,
    status_code=201,
    responses={200: {"model": wire.ItemOut, "description": "The key had a value, which is gone"}, **WRITE},
)
async def set_working_item(
    key: Key, body: wire.ItemIn, desk: DeskOf, who: Writer, res: ResourcesOf, expected: ExpectedOf
) -> Response:
    """Redacted like everything that is kept. Above the session's cap the value that was not used for the longest time
    goes. With `If-Match` it is refused (412) when the value has changed or is gone."""
    note, is_new = await working.hold(desk, Kind.ITEM, key, body.value, res, ttl_s=body.ttl_seconds, expected=expected)
    return _send(item(note), 201 if is_new else 200)


@router.get(
    "/items/{key:path}",
    operation_id="get_working_item",
    summary="The value under a key",
    response_model=wire.ItemOut,
    responses=READ,
)
async def get_working_item(key: Key, desk: DeskOf, who: Reader, res: ResourcesOf) -> Response:
    """Counts as a use; it does not make the value live longer."""
    return _send(item(await working.recollect(desk, Kind.ITEM, key, res)))


@router.delete(
    "/items/{key:path}",
    operation_id="delete_working_item",
    summary="Let go of the value under a key",
    response_model=wire.ClearedOut,
    responses=errors.documented(400, 401, 403, 404, 412, 503),
)
async def delete_working_item(
    key: Key, desk: DeskOf, who: Writer, res: ResourcesOf, expected: ExpectedOf
) -> wire.ClearedOut:
    """404 when there is none, or it is over. With `If-Match` it is refused (412) when the value has changed."""
    await working.drop(desk, Kind.ITEM, key, res, expected=expected)
    return wire.ClearedOut(deleted=1)


@router.post(
    "/turns",
    operation_id="add_working_turn",
    summary="Hold a turn",
    status_code=201,
    response_model=wire.WorkingTurnOut,
    responses=errors.documented(400, 401, 403, 413, 422, 503),
)
async def add_working_turn(body: wire.WorkingTurnIn, desk: DeskOf, who: Writer, res: ResourcesOf) -> Response:
    """Only here: the conversation itself does not get it. Above the session's cap the oldest turn goes."""
    said = Spoken(body.role, CleanText(body.content), body.name, body.timestamp)
    return _send(turn(await working.hear(desk, said, res, ttl_s=body.ttl_seconds)), 201)


@router.get(
    "/turns",
    operation_id="list_working_turns",
    summary="The newest turns",
    response_model=wire.TurnList,
    responses=errors.documented(400, 401, 403, 503),
)
async def list_working_turns(desk: DeskOf, who: Reader, res: ResourcesOf, limit: Limit = 10) -> wire.TurnList:
    """Newest first; looking counts as no use."""
    async with res.db.read(desk.workspace_id) as session:
        found = await rows.latest(session, desk, Kind.TURN, limit=limit, now=res.clock())
    return wire.TurnList(results=[turn(each) for each in found])


@router.post(
    "/thoughts",
    operation_id="push_thought",
    summary="Hold a thought",
    status_code=201,
    response_model=wire.ThoughtOut,
    responses=errors.documented(400, 401, 403, 413, 422, 503),
)
async def push_thought(body: wire.ThoughtIn, desk: DeskOf, who: Writer, res: ResourcesOf) -> Response:
    """Above the session's cap the oldest thought goes."""
    return _send(thought(await working.think(desk, body.thought, res, ttl_s=body.ttl_seconds)), 201)


@router.get(
    "/thoughts",
    operation_id="list_thoughts",
    summary="The newest thoughts",
    response_model=wire.ThoughtList,
    responses=errors.documented(400, 401, 403, 503),
)
async def list_thoughts(desk: DeskOf, who: Reader, res: ResourcesOf, limit: Limit = 10) -> wire.ThoughtList:
    """Newest first; looking counts as no use."""
    async with res.db.read(desk.workspace_id) as session:
        found = await rows.latest(session, desk, Kind.THOUGHT, limit=limit, now=res.clock())
    return wire.ThoughtList(results=[thought(each) for each in found])


@router.put(
    "/goal",
    operation_id="set_active_goal",
    summary="Set what the session works on",
    response_model=wire.ActiveGoalOut,
    status_code=201,
    responses={200: {"model": wire.ActiveGoalOut, "description": "In the place of another goal"}, **WRITE},
)
async def set_active_goal(
    body: wire.ActiveGoalIn, desk: DeskOf, who: Writer, res: ResourcesOf, expected: ExpectedOf
) -> Response:
    """The id must be of a goal that this session may see, else 404; without words of its own it lends its."""
    words = body.description
    if body.goal_id is not None:
        found = await _words_of(body.goal_id, desk, res)
        words = words or found
    value = {"goal_id": str(body.goal_id) if body.goal_id else None, "description": words}
    note, is_new = await working.hold(desk, Kind.GOAL, ONLY, value, res, ttl_s=body.ttl_seconds, expected=expected)
    return _send(active_goal(note), 201 if is_new else 200)


@router.get(
    "/goal",
    operation_id="get_active_goal",
    summary="What the session works on",
    response_model=wire.ActiveGoalOut,
    responses=READ,
)
async def get_active_goal(desk: DeskOf, who: Reader, res: ResourcesOf) -> Response:
    """404 when nothing is set, or it is over."""
    return _send(active_goal(await working.recollect(desk, Kind.GOAL, ONLY, res)))


@router.put(
    "/session",
    operation_id="set_session_data",
    summary="Hold data of the session as a whole",
    response_model=wire.SessionOut,
    status_code=201,
    responses={200: {"model": wire.SessionOut, "description": "In the place of other data"}, **WRITE},
)
async def set_session_data(
    body: wire.SessionIn, desk: DeskOf, who: Writer, res: ResourcesOf, expected: ExpectedOf
) -> Response:
    """Redacted; the former data is gone. With `If-Match` it is refused (412) when somebody was faster."""
    note, is_new = await working.hold(
        desk, Kind.SESSION, ONLY, body.data, res, ttl_s=body.ttl_seconds, expected=expected
    )
    return _send(session_data(note), 201 if is_new else 200)


@router.get(
    "/session",
    operation_id="get_session_data",
    summary="Data of the session as a whole",
    response_model=wire.SessionOut,
    responses=READ,
)
async def get_session_data(desk: DeskOf, who: Reader, res: ResourcesOf) -> Response:
    """404 when there is none, or it is over."""
    return _send(session_data(await working.recollect(desk, Kind.SESSION, ONLY, res)))


async def _words_of(goal_id: UUID, desk: Desk, res: Resources) -> str:
    async with res.db.read(desk.workspace_id) as session:
        found = await goals.get(session, desk.workspace_id, goal_id)
    if found is None or (found.scope.user_id, found.scope.agent_id) != (desk.user_id, desk.agent_id):
        raise NotFound("goal_id: there is no goal with this id.", field="goal_id")
    return found.description


def _send(body: wire.HeldOut, status: int = 200) -> Response:
    return JSONResponse(body.model_dump(mode="json"), status, {"ETag": replies.etag(body.version)})


def _held(note: Note) -> dict[str, Any]:
    return {"version": note.version, "created_at": note.created_at, "expires_at": note.expires_at}


def item(note: Note) -> wire.ItemOut:
    return wire.ItemOut(key=note.key, value=note.value, **_held(note))


def turn(note: Note) -> wire.WorkingTurnOut:
    return wire.WorkingTurnOut(**note.value, **_held(note))


def thought(note: Note) -> wire.ThoughtOut:
    return wire.ThoughtOut(thought=note.value, **_held(note))


def active_goal(note: Note) -> wire.ActiveGoalOut:
    return wire.ActiveGoalOut(**note.value, **_held(note))


def session_data(note: Note) -> wire.SessionOut:
    return wire.SessionOut(data=note.value, **_held(note))
