"""Routes for strategies: learn, list, find for a task, reinforce."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from service.cognition import procedures, strategy_ranking
from service.cognition.procedures import NewStrategy
from service.cognition.routes.strategy_models import (
    LearnStrategyRequest,
    LearnStrategyResponse,
    ReinforceStrategyRequest,
    StrategyDetailsResponse,
    StrategyPage,
    StrategyResponse,
    StrategySearchResponse,
    learn_strategy_response,
    strategy_details_response,
    strategy_search_hit,
)
from service.cognition.values import Strategy
from service.domain.request import StoredAnswer
from service.http import cursors, errors
from service.http.deps import Changer, Deleter, ListScopeOf, Reader, ResourcesOf, ScopeOf, scope_of
from service.http.json_body import JsonRoute
from service.http.preconditions import ExpectedOf, in_scope, uuid_of
from service.http.reads import AuditReadOf
from service.http.schemas import Channel, DeletedCountResponse
from service.http.writes import CallOf, answer, answer_count, send
from service.runtime.pii import clean_words

router = APIRouter(prefix="/v1/strategies", tags=["procedures"], route_class=JsonRoute)

IN_SCOPE = [in_scope(procedures.find, "strategy")]
Label = Annotated[str | None, Query(min_length=1, max_length=100)]


@router.post(
    "",
    summary="Learn a strategy",
    status_code=201,
    response_model=LearnStrategyResponse,
    responses={
        200: {"model": LearnStrategyResponse, "description": "An equal strategy was known and was reinforced"},
        **errors.document(404),
    },
)
async def learn_strategy(body: LearnStrategyRequest, caller: Changer, res: ResourcesOf, call: CallOf) -> Response:
    """A strategy is known if the scope and channel has one with the same tools and type of task and a text that is
    equal or similar enough to be a duplicate."""
    scope = scope_of(caller, body.scope_ids, body.channel)
    new = NewStrategy(
        scope,
        body.description,
        body.context_pattern,
        body.task_type,
        tuple(body.tool_sequence),
        body.success,
        body.from_conversation_id,
    )
    return send(_answer_learn(await procedures.learn(new, res, call.with_serializer(_answer_learn))))


@router.get("", summary="List the strategies of a scope")
async def list_strategies(
    caller: Reader,
    scope: ListScopeOf,
    res: ResourcesOf,
    task_type: Label = None,
    tool_name: Annotated[
        str | None, Query(min_length=1, max_length=100, description="Only strategies that use this tool")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> StrategyPage:
    """Newest first; with `channel`, those of that channel and of _global."""
    strategies = await procedures.list_strategies(
        scope, res, task_type=task_type, tool_name=tool_name, after=cursors.decode(cursor), limit=limit + 1
    )
    page, last = cursors.cut(strategies, limit)
    return StrategyPage(
        results=[StrategyResponse.of(strategy) for strategy in page],
        next_cursor=cursors.pack(last.created_at, last.id) if last else None,
    )


@router.get("/search", summary="Find strategies for a task")
async def find_strategies(
    caller: Reader,
    scope: ScopeOf,
    res: ResourcesOf,
    note: AuditReadOf,
    task: Annotated[str, Query(min_length=1, max_length=4_000, description="The task")],
    channels: Annotated[list[Channel] | None, Query(max_length=20, description="Also search these channels")] = None,
    task_type: Label = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of results")] = 5,
) -> StrategySearchResponse:
    """Ordered by similarity × smoothed success rate, (successes + 1) / (tries + 2): Laplace's rule of succession."""
    clean = await clean_words(task, "task", res)
    matches, warnings = await strategy_ranking.find(
        scope, clean, res, limit=limit, channels=channels or (), task_type=task_type
    )
    shown = [match.strategy for match in matches]
    note("strategies/search", scope, shown, query=clean, subject="procedural", channels=channels or (), top_k=limit)
    return StrategySearchResponse(results=[strategy_search_hit(match) for match in matches], warnings=list(warnings))


@router.get(
    "/{id}",
    summary="Get a strategy with the conversations it was used in",
    response_model=StrategyDetailsResponse,
    dependencies=IN_SCOPE,
)
async def get_strategy(id: str, caller: Reader, res: ResourcesOf) -> Response:
    """Returns the strategy with at most 100 conversations. The ETag is for If-Match."""
    return send(_details(await procedures.read_strategy(caller.workspace_id, uuid_of(id, "strategy"), res)))


@router.post(
    "/{id}/reinforce",
    summary="Record the outcome of a strategy",
    response_model=StrategyDetailsResponse,
    dependencies=IN_SCOPE,
)
async def reinforce_strategy(
    id: str, body: ReinforceStrategyRequest, caller: Changer, res: ResourcesOf, call: CallOf
) -> Response:
    """Adds one success or failure; concurrent calls all count."""
    strategy = await procedures.reinforce(
        caller.workspace_id,
        uuid_of(id, "strategy"),
        res,
        call.with_serializer(_details),
        success=body.success,
        conversation_id=body.conversation_id,
    )
    return send(_details(strategy))


@router.delete("/{id}", summary="Delete a strategy", response_model=DeletedCountResponse, dependencies=IN_SCOPE)
async def delete_strategy(id: str, caller: Deleter, res: ResourcesOf, call: CallOf, expected: ExpectedOf) -> Response:
    """Also deletes its vector and its list of conversations; the conversations stay."""
    wanted, call = uuid_of(id, "strategy"), call.with_serializer(answer_count)
    count = await procedures.remove(caller.workspace_id, wanted, res, call, expected=expected)
    return send(answer_count(count))


def _answer_learn(learned: tuple[Strategy, bool]) -> StoredAnswer:
    strategy, is_new = learned
    return answer(201 if is_new else 200, learn_strategy_response(strategy, is_new=is_new))


def _details(strategy: Strategy) -> StoredAnswer:
    return answer(200, strategy_details_response(strategy))
