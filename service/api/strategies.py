"""Strategies over HTTP: learned, found for a task, reinforced."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from service.api import cursors, errors
from service.api.deps import AgentId, CallerOf, Deleter, Reader, ResourcesOf, RunId, ScopeOf, UserId, Writer, scope_of
from service.api.limits import LIMITED
from service.api.preconditions import ExpectedOf
from service.api.procedure_models import (
    LearnStrategyRequest,
    LearnStrategyResponse,
    ReinforceStrategyRequest,
    StrategyDetailsResponse,
    StrategyPage,
    StrategyResponse,
    StrategySearchHit,
    StrategySearchResponse,
    StrategyUseItem,
)
from service.api.reads import NoteOf
from service.api.schemas import Channel, DeletedCountResponse
from service.api.writes import WriteOf, answer, send
from service.db.cognition import strategies as rows
from service.domain.procedure import Strategy, StrategyMatch
from service.domain.request import StoredAnswer
from service.memory import procedures
from service.memory.procedures import LearnedStrategy, NewStrategy, missing, strategy_id
from service.pipeline.pii import clean_words
from service.retrieval import strategy_ranking

router = APIRouter(prefix="/v1/strategies", tags=["procedures"])


async def belongs(
    id: str, who: CallerOf, res: ResourcesOf, user_id: UserId = None, agent_id: AgentId = None, run_id: RunId = None
) -> None:
    """Ids of a scope are not needed here; one that is given must be the strategy's own, else it is not found."""
    given = (user_id, agent_id, run_id)
    if not any(given):
        return
    async with res.db.read(who.workspace_id) as session:
        found = await rows.get(session, who.workspace_id, strategy_id(id))
    own = (found.scope.user_id, found.scope.agent_id, found.scope.run_id) if found else given
    if any(wanted is not None and wanted != there for wanted, there in zip(given, own, strict=True)):
        raise missing()


OWN = [Depends(belongs)]
Label = Annotated[str | None, Query(min_length=1, max_length=100)]


@router.post(
    "",
    operation_id="learn_strategy",
    summary="Learn a strategy",
    status_code=201,
    response_model=LearnStrategyResponse,
    responses={
        200: {"model": LearnStrategyResponse, "description": "One as good as it was known and is reinforced"},
        **errors.documented(400, 401, 403, 404, 409, 413, 422, 503),
    },
)
async def learn_strategy(body: LearnStrategyRequest, who: Writer, res: ResourcesOf, write: WriteOf) -> Response:
    """As good as known is one of the same scope and channel with the same tools for the same type of task, whose words
    are the same or so near that a memory would be a duplicate."""
    scope = scope_of(who, user_id=body.user_id, agent_id=body.agent_id, run_id=body.run_id, channel=body.channel)
    lesson = NewStrategy(
        scope,
        body.description,
        body.context_pattern,
        body.task_type,
        tuple(body.tool_sequence),
        body.success,
        body.from_conversation_id,
    )
    return send(learned(await procedures.learn(lesson, res, write.answered_by(learned))))


@router.get(
    "",
    operation_id="list_strategies",
    summary="The strategies of a scope",
    response_model=StrategyPage,
    responses=errors.documented(400, 401, 403, 503),
)
async def list_strategies(
    who: Reader,
    scope: ScopeOf,
    res: ResourcesOf,
    task_type: Label = None,
    tool_name: Annotated[str | None, Query(min_length=1, max_length=100, description="Those that use it")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> StrategyPage:
    """Those of the active channel and of _global, newest first."""
    async with res.db.read(who.workspace_id) as session:
        found = await rows.page(
            session,
            scope,
            task_type=task_type,
            tool_name=tool_name,
            after=cursors.decode(cursor),
            limit=limit + 1,
        )
    more = found[limit - 1] if len(found) > limit else None
    return StrategyPage(
        results=[StrategyResponse(**_fields(each)) for each in found[:limit]],
        next_cursor=cursors.encode(more.created_at, more.id) if more else None,
    )


@router.get(
    "/search",
    operation_id="find_strategies",
    summary="The strategies that fit a task",
    response_model=StrategySearchResponse,
    responses=errors.documented(400, 401, 403, 422, 429, 503),
    dependencies=LIMITED,
)
async def find_strategies(
    who: Reader,
    scope: ScopeOf,
    res: ResourcesOf,
    note: NoteOf,
    task: Annotated[str, Query(min_length=1, max_length=4_000, description="What is to be done")],
    channels: Annotated[list[Channel] | None, Query(max_length=20, description="Look at these channels too")] = None,
    task_type: Label = None,
    top_k: Annotated[int, Query(ge=1, le=100, description="At most so many")] = 5,
) -> StrategySearchResponse:
    """By similarity × smoothed success rate, (successes + 1) / (tries + 2): Laplace's rule of succession."""
    clean = await clean_words(task, "task", res)
    found, warnings = await strategy_ranking.find(
        scope, clean, res, limit=top_k, channels=channels or (), task_type=task_type
    )
    shown = [each.strategy for each in found]
    note("strategies/search", scope, shown, query=clean, kind="procedural", channels=channels or (), top_k=top_k)
    return StrategySearchResponse(results=[fitting(each) for each in found], warnings=list(warnings))


def fitting(found: StrategyMatch) -> StrategySearchHit:
    """A strategy with how well it fits; recall shows it so too."""
    return StrategySearchHit(
        **_fields(found.strategy),
        similarity=found.similarity,
        smoothed_rate=found.strategy.smoothed_rate,
        score=found.score,
    )


@router.get(
    "/{id}",
    operation_id="get_strategy",
    summary="A strategy with the conversations it was used in",
    response_model=StrategyDetailsResponse,
    responses=errors.documented(400, 401, 403, 404, 503),
    dependencies=OWN,
)
async def get_strategy(id: str, who: Reader, res: ResourcesOf) -> Response:
    """At most 100 conversations. The ETag is what If-Match wants."""
    async with res.db.read(who.workspace_id) as session:
        found = await rows.get(session, who.workspace_id, strategy_id(id))
    if found is None:
        raise missing()
    return send(answer(200, StrategyDetailsResponse(**_full(found))))


@router.post(
    "/{id}/reinforce",
    operation_id="reinforce_strategy",
    summary="Say how a strategy went",
    response_model=StrategyDetailsResponse,
    responses=errors.documented(400, 401, 403, 404, 409, 413, 503),
    dependencies=OWN,
)
async def reinforce_strategy(
    id: str, body: ReinforceStrategyRequest, who: Writer, res: ResourcesOf, write: WriteOf
) -> Response:
    """Counts one more use, whoever else counts at the same time."""
    strategy = await procedures.reinforce(
        who.workspace_id,
        strategy_id(id),
        res,
        write.answered_by(reinforced),
        success=body.success,
        conversation_id=body.conversation_id,
    )
    return send(reinforced(strategy))


@router.delete(
    "/{id}",
    operation_id="delete_strategy",
    summary="Delete a strategy for good",
    response_model=DeletedCountResponse,
    responses=errors.documented(400, 401, 403, 404, 412, 503),
    dependencies=OWN,
)
async def delete_strategy(id: str, who: Deleter, res: ResourcesOf, write: WriteOf, expected: ExpectedOf) -> Response:
    """With its vector and its list of conversations; the conversations stay."""
    context = write.answered_by(gone)
    count = await procedures.remove(who.workspace_id, strategy_id(id), res, context, expected=expected)
    return send(gone(count))


def learned(found: LearnedStrategy) -> StoredAnswer:
    event: Any = "ADD" if found.is_new else "REINFORCE"
    body = LearnStrategyResponse(**_full(found.strategy), event=event)
    return answer(201 if found.is_new else 200, body)


def reinforced(found: LearnedStrategy) -> StoredAnswer:
    return answer(200, StrategyDetailsResponse(**_full(found.strategy)))


def gone(count: int) -> StoredAnswer:
    return answer(200, DeletedCountResponse(deleted=count))


def _full(found: Strategy) -> dict[str, Any]:
    used = [StrategyUseItem(conversation_id=each, success=went) for each, went in found.conversations.items()]
    return {**_fields(found), "conversations": used}


def _fields(found: Strategy) -> dict[str, Any]:
    return {
        "id": found.id,
        "description": found.description,
        "context_pattern": found.context_pattern,
        "task_type": found.task_type,
        "tool_sequence": list(found.tool_sequence),
        "success_count": found.success_count,
        "failure_count": found.failure_count,
        "success_rate": found.success_rate,
        "user_id": found.scope.user_id,
        "agent_id": found.scope.agent_id,
        "run_id": found.scope.run_id,
        "channel": found.scope.channel,
        "version": found.version,
        "created_at": found.created_at,
        "last_used_at": found.last_used_at,
    }
