"""Routes for conversations and their turns."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response

from service.conversations import conversations
from service.conversations.models import (
    ConversationDetailsResponse,
    ConversationPage,
    ConversationResponse,
    CreateConversationRequest,
    PatchConversationRequest,
    StoreTurnRequest,
    StoreTurnResponse,
    TurnResponse,
    turn_fields,
)
from service.conversations.turns import TurnOutcome, store
from service.domain.conversation import Conversation
from service.domain.scope import Scope
from service.http import cursors, errors
from service.http.deps import (
    AgentId,
    CallerOf,
    Changer,
    CursorOf,
    ListScopeOf,
    Reader,
    ResourcesOf,
    RunId,
    UserId,
    scope_of,
)
from service.http.json_body import JsonRoute
from service.http.preconditions import VersionedCallOf
from service.http.writes import CallOf, etag, sends, sends_new

router = APIRouter(prefix="/v1", tags=["conversations"], route_class=JsonRoute)


ConversationId = Annotated[str, Path(min_length=1, max_length=255, description="Id or name of the conversation")]
PageLimit = Annotated[int, Query(ge=1, le=1_000)]


async def _owner(caller: CallerOf, user_id: UserId = None, agent_id: AgentId = None, run_id: RunId = None) -> Scope:
    """The owner that the conversation must have. Ids are optional unless several conversations share the name."""
    caller.check_ids(user_id, agent_id, run_id)
    return Scope(caller.workspace_id, user_id, agent_id, run_id)


OwnerOf = Annotated[Scope, Depends(_owner)]


def opened_response(conversation: Conversation) -> ConversationResponse:
    return conversation_response((conversation, conversation.next_index))


def conversation_response(counted: tuple[Conversation, int]) -> ConversationResponse:
    conversation, turn_count = counted
    consolidated = conversation.consolidated_at is not None
    return ConversationResponse.of(conversation, turn_count=turn_count, consolidated=consolidated)


@router.post(
    "/conversations",
    summary="Open a conversation",
    status_code=201,
    responses={200: {"model": ConversationResponse, "description": "It already exists"}, **errors.document(404, 412)},
)
@sends_new(opened_response)
async def create_conversation(
    body: CreateConversationRequest, caller: Changer, res: ResourcesOf, call: CallOf
) -> tuple[Conversation, bool]:
    """A conversation belongs to one user and agent, so two users may use the same name. Opening it again changes
    nothing."""
    scope = scope_of(caller, body.scope_ids, body.channel)
    name = body.external_id or body.run_id or scope.run_id
    return await conversations.open_conversation(scope.named(name), body, res, call)


@router.get("/conversations", summary="List the conversations of a scope, newest first")
async def list_conversations(
    caller: Reader,
    scope: ListScopeOf,
    res: ResourcesOf,
    cursor: CursorOf,
    limit: PageLimit = 100,
    include_archived: bool = False,
    consolidated: Annotated[
        bool | None, Query(description="Only conversations whose facts have, or have not, been extracted")
    ] = None,
    entity_id: Annotated[UUID | None, Query(description="Only conversations that mention this entity")] = None,
) -> ConversationPage:
    """`run_id` selects the conversation of this name; without `user_id`, those opened for this run. A conversation
    mentions the entities of the memories extracted from it."""
    newest, turn_counts = await conversations.list_conversations(
        scope,
        res,
        after=cursor.moment_and_id(),
        limit=limit + 1,
        include_archived=include_archived,
        consolidated=consolidated,
        entity_id=entity_id,
    )
    page, more = cursor.cut(newest, limit, "created_at", "id")
    results = [conversation_response((conversation, turn_counts.get(conversation.id, 0))) for conversation in page]
    return ConversationPage(results=results, next_cursor=more)


@router.get(
    "/conversations/{id}", summary="Get a conversation with its turns, in order", responses=errors.document(404)
)
async def get_conversation(
    id: ConversationId,
    caller: Reader,
    res: ResourcesOf,
    owner: OwnerOf,
    response: Response,
    cursor: CursorOf,
    limit: PageLimit = 100,
) -> ConversationDetailsResponse:
    """The conversation is found by id or name; a name that several users have needs `user_id` or `agent_id`. The ETag
    is for If-Match."""
    (after,) = cursor.key(cursors.Count) or (None,)
    conversation, turn_count, shown, last = await conversations.details(owner, id, res, after=after, limit=limit)
    response.headers["ETag"] = etag(conversation.version)
    return ConversationDetailsResponse(
        **dict(conversation_response((conversation, turn_count))),
        turns=[TurnResponse.of(turn, **turn_fields(turn)) for turn in shown],
        next_cursor=None if last is None else cursor.pack(last),
    )


@router.patch("/conversations/{id}", summary="Change a conversation", responses=errors.document(404))
@sends(conversation_response)
async def patch_conversation(
    id: ConversationId,
    body: PatchConversationRequest,
    caller: Changer,
    res: ResourcesOf,
    owner: OwnerOf,
    call: VersionedCallOf,
) -> tuple[Conversation, int]:
    """Changes title, metadata, `archived`, and which jobs have processed it. Turns of an archived conversation are not
    searched."""
    conversation = await conversations.get(owner, id, res)
    return await conversations.change(conversation, body, res, call)


def stored_turn_response(outcome: TurnOutcome) -> StoreTurnResponse:
    return StoreTurnResponse.of(
        outcome.turn,
        **turn_fields(outcome.turn),
        redactions=list(outcome.redactions),
        warnings=list(outcome.warnings),
    )


@router.post(
    "/conversations/{id}/turns",
    summary="Store a turn",
    status_code=201,
    responses={
        200: {"model": StoreTurnResponse, "description": "The turn was already stored"},
        **errors.document(404, 412),
    },
)
@sends(stored_turn_response, lambda outcome: 201 if outcome.is_new else 200)
async def store_turn(
    id: ConversationId, body: StoreTurnRequest, caller: Changer, res: ResourcesOf, owner: OwnerOf, call: CallOf
) -> TurnOutcome:
    """The turn is redacted, embedded and can be found at once. Sending the same text with the same `turn_index` again
    changes nothing. Without `turn_index` a turn equal to the last one counts as a repetition: to store "Yes." twice,
    number it."""
    conversation = await conversations.get(owner, id, res)
    return await store(conversation, body, res, call)
