"""How is a turn kept as it was said?

PII and embedding happen with nothing held. Then one transaction: the turn with its words and vector, the line in the
log, the audit, the copy in working memory. A turn is known by its place in the conversation: the same text at the same
place again is the same turn, another text there a conflict. Without a place, what equals the last turn is its
repetition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from service.db.cognition import working
from service.db.engine import Session
from service.db.episodes import conversations
from service.db.episodes import turns as rows
from service.db.episodes.turns import NewTurn, StoredTurn
from service.db.jobs import queue
from service.domain.conversation import Conversation, Turn
from service.domain.job import NewJob
from service.domain.request import WriteContext
from service.domain.text import CleanText, Redaction
from service.domain.working import WorkingKind, WorkingScope, WorkingTurn
from service.errors import Conflict, EmbeddingError, NotFound
from service.language.tokens import estimate
from service.memory.catch_up import PATIENCE
from service.memory.store import write_transaction
from service.memory.transactions import keep, note
from service.memory.working import limits_of
from service.pipeline import pii
from service.pipeline.embed import unit
from service.providers.protocols import Vector
from service.resources import Resources

TURNS_OF = "conversation_id"
"""In the payload of an embed job: whose turns it embeds."""

BATCH = 100
"""Turns that one call of the embedder takes from a job."""


@dataclass(frozen=True, slots=True)
class IncomingTurn:
    """What the caller says was said. `index` None: at the end. `timestamp` None: now. `token_count` None: estimated."""

    role: str
    text: str
    speaker: str | None = None
    index: int | None = None
    timestamp: datetime | None = None
    token_count: int | None = None
    model: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The turn, whether it is new, what was cut out of it, and what could not be done at once."""

    turn: Turn
    is_new: bool
    redactions: tuple[Redaction, ...] = ()
    warnings: tuple[str, ...] = ()


async def store(there: Conversation, heard: IncomingTurn, res: Resources, request: WriteContext) -> TurnOutcome:
    """Keeps one turn. Raises PiiRejected, NotFound when the conversation went meanwhile, or Conflict."""
    text, cut = await pii.clean(heard.text, "content", res)
    metadata, cut_there = await _clean(heard.metadata, res)
    redactions = pii.add_up((*cut, *cut_there))
    vector, warnings = await _vector(there, text, heard, res)
    weights = await res.threads.run(rows.weigh, text) if len(text) > pii.LONG else rows.weigh(text)
    new = NewTurn(
        heard.role,
        heard.speaker,
        text,
        heard.timestamp or res.clock(),
        vector,
        estimate(text) if heard.token_count is None else heard.token_count,
        heard.model,
        metadata,
        weights,
    )
    workspace_id = there.scope.workspace_id
    async with write_transaction(there.scope, res, request) as session:
        now = await conversations.lock(session, workspace_id, there.id)
        if now is None:
            raise missing()
        before = await _same(session, now, new, heard)
        found = before or await _put(session, now, new, heard, res, request)
        said = TurnOutcome(found, before is None, redactions, () if before else warnings)
        await keep(session, workspace_id, said, request)
    return said


async def _put(
    session: Session, there: Conversation, new: NewTurn, heard: IncomingTurn, res: Resources, request: WriteContext
) -> Turn:
    if there.archived:
        raise Conflict("The conversation is archived: it takes no new turns.", field="id")
    workspace_id = there.scope.workspace_id
    index = there.next_index if heard.index is None else heard.index
    place = await conversations.put(session, there, new, index, generation=res.generation)
    await embed_later(session, workspace_id, there.id, [new], res)
    ids = [place.id]
    await note(session, "store_turn", there.scope, ids, request, res, kind="episodic", conversation_id=there.id)
    await _hold(session, there, new, place, res)
    return (await rows.get_many(session, workspace_id, ids))[place.id]


async def _hold(session: Session, there: Conversation, new: NewTurn, place: StoredTurn, res: Resources) -> None:
    """The turn is held in mind too, at the desk of its conversation; the last lock of the transaction."""
    scope = there.scope
    desk = WorkingScope(scope.workspace_id, str(there.id), scope.user_id, scope.agent_id, scope.channel)
    spoken = WorkingTurn(new.role, new.text, new.speaker, new.timestamp, place.id, place.index)
    await working.copy_turns(session, desk, [spoken], limits_of(WorkingKind.TURN, res))


async def _same(session: Session, there: Conversation, new: NewTurn, heard: IncomingTurn) -> Turn | None:
    """The turn that this one repeats; Conflict when its place is taken by another."""
    workspace_id = there.scope.workspace_id
    if heard.index is not None:
        found = await rows.at(session, workspace_id, there.id, heard.index)
        if found is not None and not _equal(found, new):
            raise Conflict(
                f"turn_index: turn {heard.index} of the conversation says something else.", field="turn_index"
            )
        return found
    last = await rows.latest(session, workspace_id, there.id, limit=1)
    repeated = last and _equal(last[0], new) and heard.timestamp in (None, last[0].timestamp)
    return last[0] if repeated else None


def _equal(there: Turn, new: NewTurn) -> bool:
    return (there.role, there.speaker, there.hash) == (new.role, new.speaker, rows.digest(new.text))


async def _clean(metadata: Mapping[str, Any], res: Resources) -> tuple[Mapping[str, Any], tuple[Redaction, ...]]:
    if not metadata:
        return {}, ()
    found, cut = await res.threads.run(pii.of_json, "metadata", dict(metadata))
    return found, cut


async def _vector(
    there: Conversation, text: CleanText, heard: IncomingTurn, res: Resources
) -> tuple[Vector | None, tuple[str, ...]]:
    if heard.vector is not None:
        return unit(heard.vector), ()
    try:
        return (await res.embedder.embed(there.scope.workspace_id, [text]))[0], ()
    except EmbeddingError:
        return None, ("embedding_unavailable: stored without a vector, which follows later.",)


async def embed_later(
    session: Session, workspace_id: UUID, conversation_id: UUID, said: Sequence[NewTurn], res: Resources
) -> None:
    """Queues the job that makes the vectors which are missing; by their words the turns are found at once."""
    if any(each.vector is None for each in said):
        payload = {TURNS_OF: str(conversation_id)}
        await queue.enqueue(session, workspace_id, [NewJob("embed", payload=payload, max_attempts=PATIENCE)])


async def embed_missing(workspace_id: UUID, conversation_id: UUID, res: Resources) -> int:
    """How many turns of the conversation got the vector they lacked. Safe to run twice."""
    made = 0
    while True:
        async with res.db.read(workspace_id) as session:
            waiting = await rows.unembedded(
                session, workspace_id, conversation_id, generation=res.generation, limit=BATCH
            )
        if not waiting:
            return made
        vectors = await res.embedder.embed(workspace_id, [turn.text for turn in waiting])
        found = {turn.id: vector for turn, vector in zip(waiting, vectors, strict=True)}
        async with res.db.begin(workspace_id) as session:
            made += await rows.store_vectors(session, workspace_id, found, generation=res.generation)


def missing() -> NotFound:
    return NotFound("There is no conversation with this id.", field="id")
