"""How is it learned what works? Uses of tools are noted, strategies learned and reinforced.

Words and payloads are redacted and embedded with nothing held. A strategy that is as good as known (the same tools for
the same type of task, and the same said) is reinforced instead of kept twice: it is compared before the transaction,
and again under the scope's lock with those that came meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.db.cognition import invocations, strategies
from service.db.engine import Session
from service.db.episodes import conversations
from service.domain.audit import Operation
from service.domain.procedure import Invocation, Strategy
from service.domain.request import Request
from service.domain.revision import Expected
from service.domain.scope import Scope
from service.domain.text import CleanText, Redaction
from service.errors import EmbeddingError, NotFound, PreconditionFailed
from service.memory import catch_up
from service.memory.transactions import keep, note, plain_transaction
from service.pipeline import pii
from service.pipeline.dedup import is_same
from service.providers.protocols import Vector
from service.resources import Resources

MOST_CHARS = 262_144
"""Of a payload as JSON: a quarter of a million, some thousand lines of output."""

Known = Sequence[tuple[Strategy, float | None]]


async def record(asked: Invocation, res: Resources, request: Request) -> Invocation:
    """The use as noted. Raises NotFound for a conversation or turn that is not there or another's."""
    workspace_id = asked.scope.workspace_id
    clean = await _clean(asked, res)
    async with plain_transaction(workspace_id, res, request) as session:
        if clean.turn_id is not None and clean.conversation_id is not None:
            index = await invocations.turn_index(session, workspace_id, clean.conversation_id, clean.turn_id)
            if index is None:
                raise NotFound("turn_id: the conversation has no turn with this id.", field="turn_id")
            clean = replace(clean, turn_index=index)
        row_id, recorded_at = await invocations.add(session, clean)
        noted = replace(clean, id=row_id, recorded_at=recorded_at)
        await keep(session, workspace_id, noted, request)
    return noted


async def _clean(asked: Invocation, res: Resources) -> Invocation:
    given, seen = await pii.clean_payload(asked.tool_input, "tool_input", res, most_chars=MOST_CHARS)
    got: Any = None
    found: tuple[Redaction, ...] = ()
    if asked.tool_output is not None:
        got, found = await pii.clean_payload(asked.tool_output, "tool_output", res, most_chars=MOST_CHARS)
    error = asked.error_message
    if error is not None:
        error = await pii.clean_words(error, "error_message", res)
    return replace(
        asked, tool_input=given, tool_output=got, error_message=error, redactions=pii.add_up((*seen, *found))
    )


@dataclass(frozen=True, slots=True)
class NewStrategy:
    """A strategy as it was told. `success` None: nobody tried it yet."""

    scope: Scope
    description: str
    context_pattern: str | None = None
    task_type: str | None = None
    tool_sequence: tuple[str, ...] = ()
    success: bool | None = True
    from_conversation_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class LearnedStrategy:
    """The strategy, and whether it is new; else one as good as it was reinforced."""

    strategy: Strategy
    is_new: bool


async def learn(lesson: NewStrategy, res: Resources, request: Request) -> LearnedStrategy:
    """Raises NotFound for a conversation that is not there or another's."""
    scope = lesson.scope
    description = await pii.clean_words(lesson.description, "description", res)
    pattern = lesson.context_pattern
    clean_pattern = await pii.clean_words(pattern, "context_pattern", res) if pattern is not None else None
    new = Strategy(
        uuid7(),
        scope,
        description,
        clean_pattern,
        lesson.task_type,
        lesson.tool_sequence,
        int(lesson.success is True),
        int(lesson.success is False),
        1,
        res.clock(),
        None if lesson.success is None else res.clock(),
    )
    vector = await _vector(scope.workspace_id, new.words, res)
    async with res.db.read(scope.workspace_id) as session:
        seen = await _alike(session, new, vector, res)
    known = await res.threads.run(_equal, new, seen, res)
    async with plain_transaction(scope.workspace_id, res, request) as session:
        await strategies.lock(session, scope)
        await _check_conversation(session, scope, lesson.from_conversation_id)
        now = await _alike(session, new, vector, res)
        there = {each.id for each, _ in now}
        if known is None or known not in there:  # what came while nobody held the lock is compared inside
            known = _equal(new, [each for each in now if each not in seen], res)
        if known is None:
            await strategies.add(session, new, vector, generation=res.generation)
            if vector is None:
                await catch_up.embed_later(session, scope.workspace_id, catch_up.STRATEGIES)
        elif lesson.success is not None:
            await strategies.reinforce(session, scope.workspace_id, known, success=lesson.success, at=res.clock())
        strategy_id = known or new.id
        if lesson.from_conversation_id is not None and lesson.success is not None:
            conversation_id = lesson.from_conversation_id
            await strategies.link(session, scope.workspace_id, strategy_id, conversation_id, success=lesson.success)
        kept = await strategies.get(session, scope.workspace_id, strategy_id)
        assert kept is not None, "it was just written, or found under the lock"
        learned = LearnedStrategy(kept, known is None)
        operation: Operation = "strategy_add" if learned.is_new else "strategy_reinforce"
        await note(session, operation, scope, [strategy_id], request, res, kind="procedural")
        await keep(session, scope.workspace_id, learned, request)
    return learned


async def reinforce(
    workspace_id: UUID,
    strategy_id: UUID,
    res: Resources,
    request: Request,
    *,
    success: bool,
    conversation_id: UUID | None = None,
) -> LearnedStrategy:
    """The strategy after one more use. Raises NotFound."""
    async with plain_transaction(workspace_id, res, request) as session:
        if not await strategies.reinforce(session, workspace_id, strategy_id, success=success, at=res.clock()):
            raise missing()
        kept = await strategies.get(session, workspace_id, strategy_id)
        assert kept is not None, "its row is locked"
        if conversation_id is not None:
            await _check_conversation(session, kept.scope, conversation_id, "conversation_id")
            await strategies.link(session, workspace_id, strategy_id, conversation_id, success=success)
            kept = replace(kept, conversations={**kept.conversations, conversation_id: success})
        learned = LearnedStrategy(kept, is_new=False)
        ids = [strategy_id]
        await note(session, "strategy_reinforce", kept.scope, ids, request, res, kind="procedural", success=success)
        await keep(session, workspace_id, learned, request)
    return learned


async def remove(
    workspace_id: UUID, strategy_id: UUID, res: Resources, request: Request, *, expected: Expected | None = None
) -> int:
    """1; the strategy is gone. Raises NotFound or PreconditionFailed."""
    async with plain_transaction(workspace_id, res, request) as session:
        there = await strategies.get(session, workspace_id, strategy_id)
        if there is None:
            raise missing()
        if expected is not None and not expected.meets(there.version):
            raise PreconditionFailed("The strategy has changed since: read it again.", field="If-Match")
        await strategies.remove(session, workspace_id, strategy_id)
        await note(session, "strategy_delete", there.scope, [strategy_id], request, res, kind="procedural")
        await keep(session, workspace_id, 1, request)
    return 1


async def scope_of_conversation(workspace_id: UUID, conversation_id: UUID, given: Scope, res: Resources) -> Scope:
    """The scope of something that happened in a conversation: what was given, else the conversation's own. Raises
    NotFound when it is not there, or not of the user or agent that was given."""
    async with res.db.read(workspace_id) as session:
        found = await conversations.get(session, workspace_id, conversation_id)
    if found is None or not _may_meet(given, found.scope):
        raise _no_conversation("conversation_id")
    own = found.scope
    return Scope(
        workspace_id,
        given.user_id or own.user_id,
        given.agent_id or own.agent_id,
        given.run_id or own.run_id,
        given.channel,
    )


def missing() -> NotFound:
    return NotFound("There is no strategy with this id.", field="id")


def strategy_id(given: str) -> UUID:
    """The id; NotFound for anything that is no UUID."""
    try:
        return UUID(given)
    except ValueError:
        raise missing() from None


async def _vector(workspace_id: UUID, words: CleanText, res: Resources) -> Vector | None:
    try:
        return (await res.embedder.embed(workspace_id, [words]))[0]
    except EmbeddingError:
        return None


async def _alike(session: Session, new: Strategy, vector: Vector | None, res: Resources) -> Known:
    return await strategies.alike(
        session,
        new.scope,
        vector,
        generation=res.generation,
        limit=res.settings.dedup_candidates,
        tool_sequence=new.tool_sequence,
        task_type=new.task_type,
    )


def _equal(new: Strategy, known: Known, res: Resources) -> UUID | None:
    """The known strategy that says the same: the same words, or so near that a memory would be a duplicate (R4.07)."""
    for each, cosine in known:
        if each.words.casefold() == new.words.casefold():
            return each.id
        near = cosine is not None and res.embedder.similarity(cosine) >= res.settings.dedup_exact
        if near and is_same(new.words, each.words):
            return each.id
    return None


async def _check_conversation(
    session: Session, scope: Scope, conversation_id: UUID | None, field: str = "from_conversation_id"
) -> None:
    if conversation_id is None:
        return
    found = await conversations.get(session, scope.workspace_id, conversation_id)
    if found is None or not _may_meet(scope, found.scope):
        raise _no_conversation(field)


def _no_conversation(field: str) -> NotFound:
    return NotFound(f"{field}: there is no conversation with this id.", field=field)


def _may_meet(one: Scope, other: Scope) -> bool:
    """Nothing leads from one user to another, or from one agent to another (R2.03)."""
    pairs = (one.user_id, other.user_id), (one.agent_id, other.agent_id)
    return all(here is None or there is None or here == there for here, there in pairs)
