"""The recorded decisions about a memory, and undoing them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from service.domain.decision import Action
from service.domain.request import StoredAnswer
from service.http import cursors, errors
from service.http.deps import Changer, Reader, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.reads import ReadOn
from service.http.schemas import Id, NextCursor, ResponseModel, Time
from service.http.writes import WriteOf, answer, send
from service.memories import undo
from service.memories.routes.in_scope import IN_SCOPE
from service.memories.routes.memory_models import MemoryResponse, memory_response
from service.memories.statements import decisions, history
from service.memories.statements.decisions import StoredDecision
from service.runtime.transactions import memory_id, missing

router = APIRouter(prefix="/v1", tags=["decisions"], route_class=JsonRoute)


class DecisionResponse(ResponseModel):
    """A decision with its evidence."""

    id: Id = Field(description="UUID, to undo it by")
    memory_id: Id | None = Field(description="UUID of the memory it is about; null: of none")
    event: Action | None = Field(
        description="What it did: ADD, UPDATE, DELETE (archived), or NONE: nothing; null: not recorded"
    )
    source: str = Field(description="Who decided: rules, llm, or review for a person")
    model: str = Field(description="Which model, or which version of the rules; person for a review")
    prompt_sha256: str | None = Field(description="SHA-256 of the prompt, in hexadecimal; null: no model was called")
    candidates: list[str] = Field(description="UUIDs of the memories it was decided from")
    reply: str | None = Field(description="The model's answer, verbatim; null: no model was called")
    verdict: str = Field(description="In the words of whoever decided, such as ADD, UPDATE, DELETE, NONE or accept")
    reason: str = Field(description="Why, in words; may be empty")
    rejected: bool = Field(description="true: the model's answer could not be used, and the rules decided")
    state: Literal["applied", "rejected", "undone"] = Field(description="applied; rejected, as above; or undone")
    before: str | None = Field(description="The memory's text before; null: there was none, or nothing changed")
    after: str | None = Field(description="Its text afterwards; null: there is none, or nothing changed")
    ruling_id: Id | None = Field(description="UUID shared by decisions that are undone together; null: none")
    history_id: Id | None = Field(description="UUID of the entry of history that it caused; null: it changed nothing")
    created_at: Time = Field(description="When it was made")
    undone_at: Time | None = Field(description="When it was undone; null: it was not")


class DecisionPage(ResponseModel):
    """Oldest first."""

    results: list[DecisionResponse] = Field(description="At most `limit` decisions")
    next_cursor: NextCursor = None


class UndoDecisionResponse(ResponseModel):
    """A decision that was undone, with all decisions that were made together with it."""

    id: Id = Field(description="UUID of the decision")
    state: Literal["undone"] = Field(description="Always undone")
    undone_at: Time = Field(description="When it was undone, the first time")
    decisions: list[Id] = Field(description="UUIDs of all decisions of the ruling, this one included")
    memories: list[MemoryResponse] = Field(description="Those that came back, as they are now")
    removed: list[Id] = Field(description="UUIDs of memories that the ruling had made, and that are gone")


@router.get(
    "/memories/{id}/decisions",
    operation_id="get_memory_decisions",
    summary="List the decisions about a memory",
    response_model=DecisionPage,
    responses=errors.documented(400, 401, 403, 404, 503),
    dependencies=IN_SCOPE,
)
async def get_memory_decisions(
    id: str,
    caller: Reader,
    res: ResourcesOf,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 1_000,
    cursor: ReadOn = None,
) -> DecisionPage:
    """Also after the memory was deleted, until it is purged; 404 only for an id that never existed."""
    wanted, before = memory_id(id), cursors.counts(cursor)
    async with res.db.read(caller.workspace_id) as session:
        found = await decisions.of_memory(session, caller.workspace_id, wanted, skip=before[0], limit=limit + 1)
        if not found and await history.last(session, caller.workspace_id, wanted) is None:
            raise missing()
    (page,), more = cursors.cut_each(before, limit, found)
    return DecisionPage(results=[shown(each) for each in page], next_cursor=more)


@router.post(
    "/decisions/{id}/undo",
    operation_id="undo_decision",
    summary="Undo a decision",
    response_model=UndoDecisionResponse,
    responses=errors.documented(401, 403, 404, 409, 503),
)
async def undo_decision(id: str, caller: Changer, res: ResourcesOf, write: WriteOf) -> Response:
    """Restores text, vector, validity, tags, sources, entities and edges as they were. Only while the memory still is
    as the decision left it, else 409; an erased one does not come back. A repetition changes nothing."""
    decision_id = uuid_of(id, undo.missing)
    result = await undo.take_back(caller.workspace_id, decision_id, res, write.answered_by(undo_answer))
    return send(undo_answer(result))


def shown(found: StoredDecision) -> DecisionResponse:
    verdict = found.verdict
    return DecisionResponse(
        id=found.id,
        memory_id=found.memory_id,
        event=Action(found.event) if found.event else None,
        source=found.source,
        model=found.model,
        prompt_sha256=found.prompt_sha256,
        candidates=list(found.candidates),
        reply=found.reply,
        verdict=verdict.get("action", ""),
        reason=verdict.get("reason", ""),
        rejected=bool(verdict.get("rejected", found.state == "rejected")),
        state=found.state,
        before=found.before,
        after=found.after,
        ruling_id=found.ruling_id,
        history_id=found.history_id,
        created_at=found.created_at,
        undone_at=found.undone_at,
    )


def undo_answer(found: undo.UndoneDecision) -> StoredAnswer:
    assert found.decision.undone_at is not None, "it was just undone"
    body = UndoDecisionResponse(
        id=found.decision.id,
        state="undone",
        undone_at=found.decision.undone_at,
        decisions=list(found.together),
        memories=[memory_response(each) for each in found.memories],
        removed=list(found.removed),
    )
    return answer(200, body)
