"""Recording tool invocations; learning, reinforcing and ranking strategies.

Texts and payloads are redacted and embedded before the transaction. A strategy that is already known (same tools, same
type of task, and the same text or nearly so) is reinforced instead of stored twice. One that is close to a task but
always failed ranks below one that is a little less close and works.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.cognition.statements import invocations, learning, records, strategies
from service.cognition.values import (
    Invocation,
    InvocationFilter,
    LearnStrategyRequest,
    Strategy,
    StrategyMatch,
    ToolStatsItem,
)
from service.conversations.statements import conversations
from service.domain.conversation import Conversation
from service.domain.errors import NotFound
from service.domain.request import Call, Operation
from service.domain.scope import Scope
from service.domain.text import CleanText, RedactionCount
from service.memories.decide import CANDIDATES
from service.postgres.engine import Session
from service.postgres.tables import STRATEGY
from service.providers.protocols import Vector
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import plain_transaction
from service.understanding.compare import is_same

MAX_PAYLOAD_CHARS = 262_144
"""The largest payload as JSON: some thousand lines of output."""

MIN_CANDIDATES = 200
"""How many of the nearest strategies are ranked, unless more are asked for; the others are hardly about the task."""


async def record_invocation(new: Invocation, res: Resources, call: Call) -> Invocation:
    """Records an invocation. Raises NotFound for a conversation or turn that does not exist or belongs to another."""
    workspace_id = new.scope.workspace_id
    clean = await _redact(new, res)
    async with plain_transaction(workspace_id, res, call) as write:
        if clean.turn_id is not None and clean.conversation_id is not None:
            index = await invocations.turn_index(write.session, clean.conversation_id, clean.turn_id)
            if index is None:
                raise NotFound("turn_id: the conversation has no turn with this id.", field="turn_id")
            clean = replace(clean, turn_index=index)
        row_id, recorded_at = await invocations.add(write.session, clean)
        if clean.conversation_id is not None:
            await learning.unmark(write.session, clean.conversation_id)
        recorded = replace(clean, id=row_id, recorded_at=recorded_at)
        if res.settings.history.audit_level == "verbose":
            about: Any = {"conversation_id": clean.conversation_id, "invocation": row_id}
            await write.audit("record_tool", clean.scope, [], subject="procedural", **about)
        return await write.answer(recorded)


async def _redact(new: Invocation, res: Resources) -> Invocation:
    tool_input, redactions = await pii.clean_payload(new.tool_input, "tool_input", res, most_chars=MAX_PAYLOAD_CHARS)
    tool_output, of_output = new.tool_output, tuple[RedactionCount, ...]()
    if tool_output is not None:
        tool_output, of_output = await pii.clean_payload(tool_output, "tool_output", res, most_chars=MAX_PAYLOAD_CHARS)
    error = new.error_message
    return replace(
        new,
        tool_input=tool_input,
        tool_output=tool_output,
        error_message=None if error is None else await pii.clean_words(error, "error_message", res),
        redactions=pii.add_up((*redactions, *of_output)),
    )


async def learn(
    scope: Scope, new: LearnStrategyRequest, res: Resources, call: Call, *, once: bool = False
) -> tuple[Strategy, bool]:
    """Stores a strategy, or reinforces the one that it repeats; returns it, and whether it is new. `once`: does not
    count a conversation twice. Raises NotFound for a conversation that does not exist or belongs to another."""
    strategy = await _redact_strategy(scope, new, res)
    vector = await res.embed_now(scope.workspace_id, strategy.embedded_text)
    async with plain_transaction(scope.workspace_id, res, call) as write:
        session = write.session
        await strategies.lock(session, scope)
        if new.from_conversation_id is not None:
            await _find_conversation(session, scope, new.from_conversation_id, "from_conversation_id")
        equal = await _find_equal(session, strategy, vector, res)
        if once and equal is not None and new.from_conversation_id is not None:
            known = await strategies.get(session, equal)
            if known is not None and await strategies.is_linked(session, equal, new.from_conversation_id):
                return known, False
        if equal is None:
            await strategies.add(session, strategy, vector, generation=res.generation)
        elif new.success is not None:
            await strategies.reinforce(session, equal, success=new.success, at=res.clock())
        learned_id = equal or strategy.id
        if new.from_conversation_id is not None and new.success is not None:
            await strategies.link(session, learned_id, new.from_conversation_id, success=new.success)
        stored = await strategies.get(session, learned_id)
        assert stored is not None, "it was just written, or found under the lock"
        operation: Operation = "strategy_add" if equal is None else "strategy_reinforce"
        await write.audit(operation, scope, [learned_id], subject="procedural")
        return await write.answer((stored, equal is None))


async def _redact_strategy(scope: Scope, new: LearnStrategyRequest, res: Resources) -> Strategy:
    """The new strategy, if no equal one is known."""
    description = await pii.clean_words(new.description, "description", res)
    pattern = new.context_pattern
    return Strategy(
        id=uuid7(),
        scope=scope,
        description=description,
        context_pattern=await pii.clean_words(pattern, "context_pattern", res) if pattern is not None else None,
        task_type=new.task_type,
        tool_sequence=tuple(new.tool_sequence),
        success_count=int(new.success is True),
        failure_count=int(new.success is False),
        version=1,
        created_at=res.clock(),
        last_used_at=None if new.success is None else res.clock(),
    )


async def _find_equal(session: Session, new: Strategy, vector: Vector | None, res: Resources) -> UUID | None:
    """The known strategy with the same text, or one so similar that a memory would count as a duplicate."""
    known = await strategies.nearest_same_task(session, new, vector, generation=res.generation, limit=CANDIDATES)
    exact = res.settings.memories.dedup_exact
    for strategy, cosine in known:
        if strategy.embedded_text.casefold() == new.embedded_text.casefold():
            return strategy.id
        is_near = cosine is not None and res.embedder.similarity(cosine) >= exact
        if is_near and is_same(new.embedded_text, strategy.embedded_text):
            return strategy.id
    return None


async def reinforce(
    workspace_id: UUID,
    strategy_id: UUID,
    res: Resources,
    call: Call,
    *,
    success: bool,
    conversation_id: UUID | None = None,
) -> Strategy:
    """Adds one use; returns the strategy. Raises NotFound."""
    async with plain_transaction(workspace_id, res, call) as write:
        session = write.session
        if not await strategies.reinforce(session, strategy_id, success=success, at=res.clock()):
            raise NotFound.of("strategy")
        stored = await strategies.get(session, strategy_id)
        assert stored is not None, "its row is locked"
        if conversation_id is not None:
            await _find_conversation(session, stored.scope, conversation_id, "conversation_id")
            await strategies.link(session, strategy_id, conversation_id, success=success)
            stored = replace(stored, conversations={**stored.conversations, conversation_id: success})
        await write.audit("strategy_reinforce", stored.scope, [strategy_id], subject="procedural", success=success)
        return await write.answer(stored)


async def remove(workspace_id: UUID, strategy_id: UUID, res: Resources, call: Call) -> int:
    """Deletes the strategy and returns 1. Raises NotFound or PreconditionFailed."""
    async with plain_transaction(workspace_id, res, call) as write:
        strategy = await strategies.get(write.session, strategy_id)
        if strategy is None:
            raise NotFound.of("strategy")
        write.check_version(strategy.version, "strategy")
        await records.remove(write.session, STRATEGY, strategy_id)
        await write.audit("strategy_delete", strategy.scope, [strategy_id], subject="procedural")
        return await write.answer(1)


async def scope_of_conversation(workspace_id: UUID, conversation_id: UUID, scope: Scope, res: Resources) -> Scope:
    """The scope, completed with the ids of the conversation. Raises NotFound if the conversation does not exist
    or belongs to another user or agent."""
    async with res.db.read(workspace_id) as session:
        own = (await _find_conversation(session, scope, conversation_id, "conversation_id")).scope
    return Scope(
        workspace_id,
        scope.user_id or own.user_id,
        scope.agent_id or own.agent_id,
        scope.run_id or own.run_id,
        scope.channel,
        is_run=scope.run_id is not None or own.is_run,
    )


find_strategy = strategies.get


async def read_strategy(workspace_id: UUID, strategy_id: UUID, res: Resources) -> Strategy:
    """A strategy. Raises NotFound."""
    async with res.db.read(workspace_id) as session:
        strategy = await strategies.get(session, strategy_id)
    if strategy is None:
        raise NotFound.of("strategy")
    return strategy


async def list_strategies(
    scope: Scope,
    res: Resources,
    *,
    task_type: str | None,
    tool_name: str | None,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[Strategy]:
    """Strategies of a scope, newest first; `tool_name`: those that use it."""
    async with res.db.read(scope.workspace_id) as session:
        return await strategies.page(session, scope, task_type=task_type, tool_name=tool_name, after=after, limit=limit)


async def list_invocations(
    scope: Scope, wanted: InvocationFilter, res: Resources, *, after: tuple[datetime, int] | None, limit: int
) -> list[Invocation]:
    """Invocations of a scope by time of recording, newest first."""
    async with res.db.read(scope.workspace_id) as session:
        return await invocations.page(session, scope, wanted, after=after, limit=limit)


async def tool_stats(scope: Scope, wanted: InvocationFilter, res: Resources) -> list[ToolStatsItem]:
    """The statistics of each tool, the most used first. A scope without ids means the whole workspace."""
    async with res.db.read(scope.workspace_id) as session:
        return await invocations.stats(session, scope, wanted)


async def _find_conversation(session: Session, scope: Scope, conversation_id: UUID, field: str) -> Conversation:
    conversation = await conversations.get(session, conversation_id)
    if conversation is None or not scope.may_link_to(conversation.scope):
        raise NotFound.of("conversation", field)
    return conversation


async def find_strategies(
    scope: Scope,
    task: CleanText,
    res: Resources,
    *,
    limit: int,
    channels: Sequence[str] = (),
    task_type: str | None = None,
) -> tuple[list[StrategyMatch], tuple[str, ...]]:
    """Returns at most `limit` strategies, best first, and warnings: without an embedder only success counts."""
    vector = await res.embed_query_now(scope.workspace_id, task)
    warnings = () if vector is not None else ("embedding_unavailable: ranked by success alone.",)
    async with res.db.read(scope.workspace_id) as session:
        matches = await rank_nearest(session, scope, vector, res, limit=limit, channels=channels, task_type=task_type)
    return matches, warnings


async def rank_nearest(
    session: Session,
    scope: Scope,
    vector: Vector | None,
    res: Resources,
    *,
    limit: int,
    channels: Sequence[str] = (),
    task_type: str | None = None,
) -> list[StrategyMatch]:
    """Ranks in the caller's transaction, with the vector of the task, None without an embedder."""
    candidates = await strategies.nearest(
        session,
        scope,
        vector,
        generation=res.generation,
        limit=max(MIN_CANDIDATES, limit),
        channels=channels,
        task_type=task_type,
    )
    return rank(candidates, res.embedder.query_similarity, limit=limit)


def rank(
    candidates: Sequence[tuple[Strategy, float | None]], similarity: Callable[[float], float], *, limit: int
) -> list[StrategyMatch]:
    """Ranks strategies with their cosines, best first, equal ones by id. A strategy without a cosine has similarity 0
    if others have one, and 1 if none has."""
    no_cosines = all(cosine is None for _, cosine in candidates)
    matches = []
    for strategy, cosine in candidates:
        alike = None if cosine is None else similarity(cosine)
        weight = alike if alike is not None else float(no_cosines)
        matches.append(StrategyMatch(strategy, alike, weight * strategy.smoothed_rate))
    return sorted(matches, key=lambda match: (-match.score, str(match.strategy.id)))[:limit]
