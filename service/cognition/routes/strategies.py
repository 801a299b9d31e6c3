"""Routes for strategies: learn, list, find for a task, reinforce."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from service.cognition import procedures
from service.cognition.values import LearnStrategyRequest, Strategy, StrategyMatch
from service.http import errors
from service.http.deps import Changer, CursorOf, Deleter, ListScopeOf, Reader, ResourcesOf, ScopeOf, scope_of
from service.http.json_body import JsonRoute
from service.http.preconditions import VersionedCallOf, in_scope, uuid_of
from service.http.reads import AuditReadOf
from service.http.schemas import (
    Channel,
    Id,
    NextCursor,
    OfAgent,
    OfChannel,
    OfRun,
    OfUser,
    RequestModel,
    ResponseModel,
    Time,
    Unit,
    example,
)
from service.http.writes import CallOf, count_response, sends
from service.runtime.pii import clean_words


class ReinforceStrategyRequest(RequestModel):
    """The outcome of one more use of a strategy."""

    model_config = example(success=True)

    success: bool = Field(description="Whether it worked this time")
    conversation_id: Id | None = Field(
        None, description="UUID of the conversation it was used in; recorded with the strategy"
    )


class StrategyResponse(ResponseModel):
    """A way to do a task, and how often it worked."""

    id: Id = Field(description="UUID")
    description: str = Field(description="What to do, redacted")
    context_pattern: str | None = Field(description="When it fits; null: not given")
    task_type: str | None = Field(description="Your name for the kind of task it is for; null: none")
    tool_sequence: list[str] = Field(description="Names of tools, in the order of their use")
    success_count: int = Field(description="How often it worked")
    failure_count: int = Field(description="How often it failed")
    success_rate: Unit | None = Field(description="Successes / (successes + failures); null: never tried")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    channel: OfChannel
    version: int = Field(description="Starts at 1, incremented by each reinforcement; the ETag")
    created_at: Time = Field(description="When it was learned")
    last_used_at: Time | None = Field(description="When it was last reinforced; null: never")


class StrategyUseItem(ResponseModel):
    """A conversation that a strategy was used in."""

    conversation_id: Id = Field(description="UUID")
    success: bool = Field(description="Whether it worked there")


class StrategyDetailsResponse(StrategyResponse):
    """A strategy with at most 100 conversations it was used in."""

    conversations: list[StrategyUseItem] = Field(description="Where it was used")


class LearnStrategyResponse(StrategyDetailsResponse):
    """The new strategy, or an equal known one that was reinforced."""

    event: Literal["ADD", "REINFORCE"] = Field(description="ADD: new; REINFORCE: an equal one was known")


class StrategyPage(ResponseModel):
    """Newest first; pass `next_cursor` as `cursor` for the next page."""

    results: list[StrategyResponse] = Field(description="At most `limit` strategies")
    next_cursor: NextCursor = None


class StrategySearchHit(StrategyResponse):
    """A strategy that fits a task."""

    similarity: float | None = Field(description="Calibrated cosine to the task, 0..1; null without a vector")
    smoothed_rate: float = Field(description="(successes + 1) / (successes + failures + 2); 0.5 if never tried")
    score: float = Field(description="`similarity` times `smoothed_rate`; without a similarity the rate alone")


class StrategySearchResponse(ResponseModel):
    """Best first."""

    results: list[StrategySearchHit] = Field(description="At most `limit` strategies")
    warnings: list[str] = Field(description="What was skipped, each as `code: sentence`", default_factory=list)


def strategy_search_hit(match: StrategyMatch) -> StrategySearchHit:
    return StrategySearchHit.of(match.strategy, similarity=match.similarity, score=match.score)


def _uses(strategy: Strategy) -> list[StrategyUseItem]:
    return [StrategyUseItem(conversation_id=key, success=success) for key, success in strategy.conversations.items()]


router = APIRouter(prefix="/v1/strategies", tags=["procedures"], route_class=JsonRoute)

IN_SCOPE = [in_scope(procedures.find_strategy, "strategy")]
Label = Annotated[str | None, Query(min_length=1, max_length=100)]


def strategy_details_response(strategy: Strategy) -> StrategyDetailsResponse:
    return StrategyDetailsResponse.of(strategy, conversations=_uses(strategy))


def learned_strategy_response(learned: tuple[Strategy, bool]) -> LearnStrategyResponse:
    strategy, is_new = learned
    event = "ADD" if is_new else "REINFORCE"
    return LearnStrategyResponse.of(strategy, conversations=_uses(strategy), event=event)


@router.post(
    "",
    summary="Learn a strategy",
    status_code=201,
    responses={
        200: {"model": LearnStrategyResponse, "description": "An equal strategy was known and was reinforced"},
        **errors.document(404),
    },
)
@sends(learned_strategy_response, lambda learned: 201 if learned[1] else 200)
async def learn_strategy(
    body: LearnStrategyRequest, caller: Changer, res: ResourcesOf, call: CallOf
) -> tuple[Strategy, bool]:
    """A strategy is known if the scope and channel has one with the same tools and type of task and a text that is
    equal or similar enough to be a duplicate."""
    scope = scope_of(caller, body.scope_ids, body.channel)
    return await procedures.learn(scope, body, res, call)


@router.get("", summary="List the strategies of a scope")
async def list_strategies(
    caller: Reader,
    scope: ListScopeOf,
    res: ResourcesOf,
    cursor: CursorOf,
    task_type: Label = None,
    tool_name: Annotated[
        str | None, Query(min_length=1, max_length=100, description="Only strategies that use this tool")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> StrategyPage:
    """Newest first; with `channel`, those of that channel and of _global."""
    strategies = await procedures.list_strategies(
        scope, res, task_type=task_type, tool_name=tool_name, after=cursor.moment_and_id(), limit=limit + 1
    )
    page, more = cursor.cut(strategies, limit, "created_at", "id")
    return StrategyPage(
        results=[StrategyResponse.of(strategy) for strategy in page],
        next_cursor=more,
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
    matches, warnings = await procedures.find_strategies(
        scope, clean, res, limit=limit, channels=channels or (), task_type=task_type
    )
    shown = [match.strategy for match in matches]
    note("strategies/search", scope, shown, query=clean, subject="procedural", channels=channels or (), top_k=limit)
    return StrategySearchResponse(results=[strategy_search_hit(match) for match in matches], warnings=list(warnings))


@router.get("/{id}", summary="Get a strategy with the conversations it was used in", dependencies=IN_SCOPE)
@sends(strategy_details_response)
async def get_strategy(id: str, caller: Reader, res: ResourcesOf) -> Strategy:
    """Returns the strategy with at most 100 conversations. The ETag is for If-Match."""
    return await procedures.read_strategy(caller.workspace_id, uuid_of(id, "strategy"), res)


@router.post("/{id}/reinforce", summary="Record the outcome of a strategy", dependencies=IN_SCOPE)
@sends(strategy_details_response)
async def reinforce_strategy(
    id: str, body: ReinforceStrategyRequest, caller: Changer, res: ResourcesOf, call: CallOf
) -> Strategy:
    """Adds one success or failure; concurrent calls all count."""
    return await procedures.reinforce(
        caller.workspace_id,
        uuid_of(id, "strategy"),
        res,
        call,
        success=body.success,
        conversation_id=body.conversation_id,
    )


@router.delete("/{id}", summary="Delete a strategy", dependencies=IN_SCOPE)
@sends(count_response)
async def delete_strategy(id: str, caller: Deleter, res: ResourcesOf, call: VersionedCallOf) -> int:
    """Also deletes its vector and its list of conversations; the conversations stay."""
    return await procedures.remove(caller.workspace_id, uuid_of(id, "strategy"), res, call)
