"""Routes for deleting and purging conversations and turns."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from service.conversations.routes.conversations import ConversationId, OwnerOf
from service.domain.request import StoredAnswer
from service.erasure import forget_conversation
from service.erasure.forget_conversation import DeletedTalk
from service.erasure.routes.deletion import PurgeOf, PurgeReceiptResponse, receipt_answer
from service.http import errors
from service.http.deps import Deleter, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.preconditions import VersionedCallOf, uuid_of
from service.http.schemas import Id, ResponseModel
from service.http.writes import CallOf, answer, send

router = APIRouter(prefix="/v1", tags=["conversations"], route_class=JsonRoute)

FactsOf = Annotated[
    bool, Query(description="Also delete the facts that were extracted from it alone; a purge always does")
]


class DeletedTalkResponse(ResponseModel):
    """The outcome of deleting a conversation or a turn."""

    id: Id = Field(description="UUID of the conversation or the turn")
    deleted: bool = Field(description="Always true")
    already_deleted: bool = Field(description="Whether it had been deleted before")
    turns: int = Field(description="Number of turns deleted")
    memories: int = Field(description="Number of memories deleted with them")


@router.delete(
    "/conversations/{id}",
    summary="Delete a conversation with its turns",
    response_model=DeletedTalkResponse | PurgeReceiptResponse,
    responses=errors.document(404),
)
async def delete_conversation(
    id: ConversationId,
    caller: Deleter,
    res: ResourcesOf,
    owner: OwnerOf,
    purge: PurgeOf,
    call: VersionedCallOf,
    facts: FactsOf = False,
) -> Response:
    """Also deletes its turns, messages that were stored verbatim, its working memory and its tool invocations. Facts
    extracted from it stay unless `facts=true`; the log of conversations stays. Repeating the request returns
    `already_deleted`.

    With `purge=true` all of it is erased from every table, with the facts extracted from it alone, even if it was
    deleted before (by its id), and the response is a receipt.
    """
    talk = await forget_conversation.find_present_or_logged(owner, id, res)
    if purge:
        call = call.with_serializer(receipt_answer)
        return send(receipt_answer(await forget_conversation.purge_talk(talk, res, call)))
    call = call.with_serializer(_answer)
    deleted = await forget_conversation.delete(talk, res, call, with_facts=facts)
    return send(_answer(deleted))


@router.delete("/turns/{id}", summary="Delete a turn", response_model=DeletedTalkResponse | PurgeReceiptResponse)
async def delete_turn(
    id: str,
    caller: Deleter,
    res: ResourcesOf,
    owner: OwnerOf,
    purge: PurgeOf,
    call: CallOf,
    facts: FactsOf = False,
) -> Response:
    """Also deletes the message that was stored verbatim. Facts extracted from it stay unless `facts=true`. The other
    turns keep their indexes. `purge=true` works as for a conversation."""
    talk = await forget_conversation.find_turn(owner, uuid_of(id, "turn"), res)
    if purge:
        receipt = await forget_conversation.purge_talk(talk, res, call.with_serializer(receipt_answer))
        return send(receipt_answer(receipt))
    return send(_answer(await forget_conversation.delete(talk, res, call.with_serializer(_answer), with_facts=facts)))


def _answer(deleted: DeletedTalk) -> StoredAnswer:
    body = DeletedTalkResponse.of(deleted, deleted=True)
    return answer(200, body)
