"""Route for forgetting what a query or ids refer to, with a dry run."""

from __future__ import annotations

from typing import Annotated, Self
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import Field, model_validator

from service.domain.access import Caller
from service.domain.errors import InvalidInput
from service.domain.scope import Extent
from service.erasure import forget_matched, forget_plan
from service.erasure.forget_matched import Forgotten
from service.erasure.routes.deletion import prepare_purge
from service.erasure.values import (
    ForgetPlan,
    ForgetTarget,
    ForgottenSentenceItem,
    Matched,
    PurgeReceiptResponse,
)
from service.http.deps import Forgetter, ResourcesOf, scope_of
from service.http.json_body import JsonRoute
from service.http.schemas import SHARED_ONLY, Filled, Id, Name, ResponseModel, ScopeFields, example
from service.http.writes import CallOf, sends
from service.runtime.pii import clean_words
from service.runtime.resources import Resources

router = APIRouter(prefix="/v1", tags=["memories"], route_class=JsonRoute)

MAX_QUERY = 2_000
MAX_IDS = 1_000


HIDDEN = {"text": None, "reason": "is purged"}
UUIDS = Field(json_schema_extra={"format": "uuid"})


class ForgetRequest(ScopeFields):
    """What to forget: exactly one of `query` and `ids`, within a scope given by user_id, agent_id, run_id or shared."""

    model_config = example(query="everything about Wanda", user_id="alice", dry_run=True)

    query: Annotated[Filled | None, Field(max_length=MAX_QUERY)] = Field(
        None, description="An identifier, a name, or words; docs/forgetting.md describes how they match"
    )
    ids: list[Annotated[Name, UUIDS]] | None = Field(
        None, min_length=1, max_length=MAX_IDS, description="UUIDs of memories, instead of query"
    )
    shared: bool = Field(False, description=f"{SHARED_ONLY} (right memory:share)")
    session_id: Name | None = Field(None, description="Only memories and conversations of this session")
    dry_run: bool = Field(False, description="Report what would be removed, and remove nothing")
    purge: bool = Field(
        False,
        description="Also remove it from history, logs, jobs and caches (right memory:purge); this cannot be undone",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.query is None) == (self.ids is None):
            raise ValueError("query: give either query or ids")
        return self


class ForgottenMemoryItem(ResponseModel):
    """A memory that matches, or is a near miss."""

    id: Id = Field(description="UUID")
    memory: str | None = Field(description="Its text; null once purged")
    reason: str = Field(description="Why it matches, or is a near miss")
    remaining: str | None = Field(description="What remains of it if only some of its sentences match; null: nothing")
    probability: float | None = Field(
        description="Probability that a near miss matches, by its similarity to the query, 0..1; null: unknown"
    )


class ForgetResponse(ResponseModel):
    """What matched and, unless it was a dry run, was removed."""

    dry_run: bool = Field(description="Whether this was a dry run, which removes nothing")
    removed: bool = Field(description="Whether something was removed")
    matched: Matched = Field(description="How it was found")
    explanation: str = Field(description="Why these and no others were found, or why nothing")
    memories: list[ForgottenMemoryItem] = Field(description="Memories that match")
    turns: list[ForgottenSentenceItem] = Field(
        description="Sentences of turns that match, or that a matching memory was extracted from"
    )
    near_misses: list[ForgottenMemoryItem] = Field(description="Similar memories, which stay; at most 10")
    receipt: PurgeReceiptResponse | None = Field(description="Receipt of a purge; else null")
    warnings: list[str] = Field(description="What was skipped, each as `code: sentence`")


def forget_response(forgotten: Forgotten) -> ForgetResponse:
    plan, purged = forgotten.plan, forgotten.receipt is not None
    return ForgetResponse(
        dry_run=forgotten.dry_run,
        removed=not forgotten.dry_run and not plan.is_empty,
        matched=plan.matched,
        explanation=plan.explanation,
        memories=[_memory(target, hidden=purged) for target in plan.memories],
        turns=[sentence.model_copy(update=HIDDEN if purged else {}) for sentence in plan.sentences],
        near_misses=[_memory(target, hidden=False) for target in plan.near],
        receipt=forgotten.receipt,
        warnings=list(forgotten.warnings),
    )


@router.post("/forget", summary="Forget what a query refers to")
@sends(forget_response)
async def forget(request: Request, body: ForgetRequest, caller: Forgetter, res: ResourcesOf, call: CallOf) -> Forgotten:
    """Removes memories and sentences of turns that contain the identifier or name in any of its forms, or all words of
    the query; else the one memory that is clearly nearest in meaning; else nothing, and says why. `dry_run` shows
    exactly what would be removed. Near misses stay."""
    if body.purge:
        await prepare_purge(request, caller)
    wanted = _scope_of(body, caller)
    plan = await _plan(body, wanted, res)
    if body.dry_run:
        return Forgotten(plan, dry_run=True)
    return await forget_matched.remove(wanted, plan, res, call, for_good=body.purge)


def _scope_of(body: ForgetRequest, caller: Caller) -> Extent:
    scope = scope_of(caller, body.scope_ids, body.channel, shared=body.shared)
    return Extent(scope, body.channel or caller.own_channel, session_id=body.session_id)


async def _plan(body: ForgetRequest, wanted: Extent, res: Resources) -> ForgetPlan:
    if body.ids is not None:
        return await forget_plan.by_ids(wanted, [_uuid(each) for each in body.ids], res)
    assert body.query is not None, "one of both is given"
    clean = await clean_words(body.query, "query", res)
    return await forget_plan.by_query(wanted, body.query, clean, res, with_deleted=body.purge)


def _uuid(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise InvalidInput("ids: each must be the UUID of a memory.", field="ids") from None


def _memory(target: ForgetTarget, *, hidden: bool) -> ForgottenMemoryItem:
    return ForgottenMemoryItem(
        id=target.id,
        memory=None if hidden else target.text,
        reason="is purged" if hidden else target.reason,
        remaining=None if hidden else target.remaining or None,
        probability=target.probability,
    )
