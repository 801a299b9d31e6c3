"""Routes for deleting and purging conversations and turns."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.conversations.routes.conversations import ConversationId, OwnerOf
from service.erasure import forget_conversation
from service.erasure.routes.deletion import PurgeOf
from service.erasure.values import DeletedTurnsResponse, PurgeReceiptResponse
from service.http import errors
from service.http.deps import Deleter, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.preconditions import VersionedCallOf, uuid_of
from service.http.writes import CallOf, sends

router = APIRouter(prefix="/v1", tags=["conversations"], route_class=JsonRoute)

FactsOf = Annotated[
    bool, Query(description="Also delete the facts that were extracted from it alone; a purge always does")
]


@router.delete("/conversations/{id}", summary="Delete a conversation with its turns", responses=errors.document(404))
@sends()
async def delete_conversation(
    id: ConversationId,
    caller: Deleter,
    res: ResourcesOf,
    owner: OwnerOf,
    purge: PurgeOf,
    call: VersionedCallOf,
    facts: FactsOf = False,
) -> DeletedTurnsResponse | PurgeReceiptResponse:
    """Also deletes its turns, messages that were stored verbatim, its working memory and its tool invocations. Facts
    extracted from it stay unless `facts=true`; the log of conversations stays. Repeating the request returns
    `already_deleted`.

    With `purge=true` all of it is erased from every table, with the facts extracted from it alone, even if it was
    deleted before (by its id), and the response is a receipt.
    """
    target = await forget_conversation.find_present_or_logged(owner, id, res, by_name=not purge)
    if purge:
        return await forget_conversation.erase(target, res, call)
    return await forget_conversation.delete(target, res, call, with_facts=facts)


@router.delete("/turns/{id}", summary="Delete a turn")
@sends()
async def delete_turn(
    id: str,
    caller: Deleter,
    res: ResourcesOf,
    owner: OwnerOf,
    purge: PurgeOf,
    call: CallOf,
    facts: FactsOf = False,
) -> DeletedTurnsResponse | PurgeReceiptResponse:
    """Also deletes the message that was stored verbatim. Facts extracted from it stay unless `facts=true`. The other
    turns keep their indexes. `purge=true` works as for a conversation."""
    target = await forget_conversation.find_turn(owner, uuid_of(id, "turn"), res)
    if purge:
        return await forget_conversation.erase(target, res, call)
    return await forget_conversation.delete(target, res, call, with_facts=facts)
