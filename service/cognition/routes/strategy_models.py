"""Request and response models for strategies."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from service.cognition.values import Strategy, StrategyMatch
from service.http.schemas import (
    Filled,
    Id,
    NextCursor,
    OfAgent,
    OfChannel,
    OfRun,
    OfUser,
    RequestModel,
    ResponseModel,
    ScopeFields,
    Secretless,
    Time,
    Unit,
    example,
)

Label = Annotated[Filled, Field(min_length=1, max_length=100), Secretless]
StrategyText = Annotated[Filled, Field(min_length=1, max_length=4_000)]


class LearnStrategyRequest(ScopeFields):
    """At least one of user_id, agent_id, run_id."""

    model_config = example(
        user_id="alice",
        description="Look for night trains before flights",
        context_pattern="A trip within the country",
        task_type="travel",
        tool_sequence=["search_trains", "search_flights"],
        success=True,
    )

    description: StrategyText = Field(description="What to do")
    context_pattern: StrategyText | None = Field(None, description="When it fits")
    task_type: Label | None = Field(None, description="Your name for the kind of task it is for")
    tool_sequence: Annotated[list[Label], Field(max_length=50)] = Field(
        default_factory=list, description="Names of tools, in the order of their use"
    )
    from_conversation_id: Id | None = Field(
        None, description="UUID of the conversation it was learned from; `success` is recorded for it"
    )
    success: bool | None = Field(True, description="Whether it worked there; null: not tried yet")


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


def strategy_details_response(strategy: Strategy) -> StrategyDetailsResponse:
    return StrategyDetailsResponse.of(strategy, conversations=_uses(strategy))


def learn_strategy_response(strategy: Strategy, *, is_new: bool) -> LearnStrategyResponse:
    event = "ADD" if is_new else "REINFORCE"
    return LearnStrategyResponse.of(strategy, conversations=_uses(strategy), event=event)


def strategy_search_hit(match: StrategyMatch) -> StrategySearchHit:
    return StrategySearchHit.of(match.strategy, similarity=match.similarity, score=match.score)


def _uses(strategy: Strategy) -> list[StrategyUseItem]:
    return [StrategyUseItem(conversation_id=each, success=success) for each, success in strategy.conversations.items()]
