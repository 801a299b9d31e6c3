"""Reads messages for their facts, with the turns before them and what is already known, and makes drafts of the facts.

A model also gets the memories nearest to the messages, by the vectors that the turns are stored with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

import numpy as np

from service.conversations.statements import conversations, turns
from service.domain import sizes
from service.domain.draft import Annotation, CallerFields, Draft, EmbeddingStatus, Options
from service.domain.errors import EmbeddingError, PiiRejected, TooLarge
from service.domain.fact import Fact
from service.domain.text import CleanText
from service.intake.conversation import ConversationDraft
from service.language.talk import Utterance
from service.language.talk.dates import as_said
from service.language.talk.quotes import SAME_TALK
from service.memories import annotate, decide
from service.memories.pipeline import FACT, run_all
from service.postgres.engine import Session
from service.providers.protocols import Vector, unit
from service.runtime import pii
from service.runtime.resources import Resources
from service.understanding import extract
from service.understanding.extract import Extracted
from service.understanding.sourcing import SourceTurns

LAST_TURNS = 6
"""Turns of the conversation that are read with new messages: who asked, what is corrected."""

KNOWN = 20
"""Memories that a model sees with the messages: for facts in long conversations the nearest memory is among them five
times in six. With eight it was two times in three."""

EMBEDDED_AT_ONCE_CHARS = 8_000
"""Messages of up to this many characters in all are embedded at once, in some 0.2 s; a job embeds longer ones later."""


async def read(
    utterances: Sequence[Utterance], messages: Sequence[Draft], conversation: ConversationDraft, res: Resources
) -> tuple[Extracted, Sequence[Vector]]:
    """The facts in `utterances`, and the vectors of the messages; none if a job is to make them. Raises LlmError."""
    first = conversation.drafts[0]
    sources = SourceTurns(utterances, zone=ZoneInfo(first.given.timezone))
    workspace_id, by_model = conversation.scope.workspace_id, res.llm is not None and first.options.use_llm
    new = conversation.stored is None
    vectors = await _vectors(messages, res) if by_model else ()
    async with res.db.read(workspace_id, generic_plans=True) as session:
        sources = replace(
            sources,
            before=await _read_turns_before(session, conversation, messages[0]),
            known=await _find_known(session, messages, vectors, res),
        )
    if by_model:
        return await extract.from_messages(sources, workspace_id, res, instruction=conversation.instruction), vectors
    chars = sum(len(utterance.text) for utterance in sources.messages)
    extracted = res.rules.run_if_long(chars, extract.by_rules, sources)
    return await asyncio.gather(extracted, _vectors(messages if new else (), res))


def source_message(draft: Draft) -> Utterance:
    """A message in the form that facts are checked against."""
    assert draft.speech is not None, "a conversation is made of messages"
    return Utterance(draft.speech.role, draft.clean, draft.speech.speaker, draft.timestamp)


async def _read_turns_before(session: Session, conversation: ConversationDraft, first: Draft) -> list[Utterance]:
    """The last turns before the first message: of its conversation, or else of the same user and agent."""
    scope, name = conversation.scope, conversation.external_id
    if conversation.stored is not None:
        place = conversation.stored[0]
        contents = await turns.latest_before(session, place.conversation_id, place.index, limit=LAST_TURNS)
    elif name is not None:
        talk = await conversations.of_scope(session, scope.named(name))
        contents = await turns.latest_before(session, talk.id, talk.next_index, limit=LAST_TURNS) if talk else []
    else:
        since = first.timestamp - SAME_TALK
        contents = await turns.latest_of_recent_conversation(session, scope, since, first.timestamp, limit=LAST_TURNS)
    return [Utterance(content.role, content.text, content.speaker, content.timestamp) for content in contents]


async def _vectors(messages: Sequence[Draft], res: Resources) -> Sequence[Vector]:
    """The vectors of the messages; none if they are long or the embedder fails."""
    if not messages or sum(len(draft.clean) for draft in messages) > EMBEDDED_AT_ONCE_CHARS:
        return ()
    try:
        return await res.embedder.embed(messages[0].scope.workspace_id, [draft.clean for draft in messages])
    except EmbeddingError:
        return ()


async def _find_known(
    session: Session, messages: Sequence[Draft], vectors: Sequence[Vector], res: Resources
) -> list[CleanText]:
    """The memories nearest to the mean vector of the messages that existed when these were said."""
    if not vectors or not np.any(middle := np.sum(vectors, axis=0)):
        return []
    draft = replace(messages[-1], vector=unit(middle), embedding_status=EmbeddingStatus.STORED)
    neighbours = await decide.find_neighbours(session, draft, res, limit=KNOWN)
    said_at = draft.timestamp
    return [
        neighbour.text
        for neighbour in neighbours.neighbours
        if neighbour.timestamp is None or neighbour.timestamp <= said_at
    ]


async def prepare(
    extracted: Extracted,
    messages: Sequence[Draft],
    conversation: ConversationDraft,
    res: Resources,
    timings_ms: Mapping[str, float],
) -> tuple[list[Draft], tuple[str, ...]]:
    """The facts with vector and annotation. One that cannot be embedded is kept, and compared by its text alone. Raises
    TooLarge for more than one request may store."""
    count = len(extracted.facts)
    if count > sizes.FACTS_AT_ONCE and conversation.stored is None:
        detail = f"messages: they contain {count:,} facts; the maximum per request is {sizes.FACTS_AT_ONCE:,}."
        raise TooLarge(detail, field="messages")
    drafts: list[Draft] = []
    warnings: list[str] = []
    for fact in extracted.facts:
        draft = replace(_make_draft(fact, messages, conversation, res), timings_ms=timings_ms)
        try:
            clean = await pii.redact(draft, res)
        except PiiRejected:
            warnings.append("pii_rejected: a fact that announces a secret was left out.")
            continue
        cut = pii.still_in(clean.clean, (_source_of(fact, messages) or messages[-1]).redactions)
        clean = replace(clean, redactions=pii.add_up((*clean.redactions, *cut)))
        drafts.append(clean)
    drafts = _without_repetitions(drafts)
    if not drafts:
        return [], tuple(warnings)
    ready = await run_all(FACT, drafts, replace(res, llm=None))
    if waiting := sum(each.embedding_status is not EmbeddingStatus.STORED for each in ready):
        warnings.append(f"embedding_unavailable: {waiting} facts were stored; their vectors will be added later.")
    return [_with_validity(draft) for draft in ready], tuple(warnings)


def _without_repetitions(drafts: Sequence[Draft]) -> list[Draft]:
    """The first and the last of equal facts: what was said before may hold again ("Oslo", "Rome", "Oslo")."""
    last = {draft.clean: index for index, draft in enumerate(drafts)}
    kept: list[Draft] = []
    seen: set[CleanText] = set()
    for index, draft in enumerate(drafts):
        if draft.clean not in seen or (index == last[draft.clean] and draft.clean != kept[-1].clean):
            kept.append(draft)
        seen.add(draft.clean)
    return kept


def _with_validity(draft: Draft) -> Draft:
    """The draft with the period of validity from the model, unless it has one."""
    if draft.given.t_valid is not None or draft.given.t_invalid is not None:
        return draft
    fact = fact_of(draft)
    return replace(draft, given=replace(draft.given, t_valid=fact.t_valid, t_invalid=fact.t_invalid))


def fact_of(draft: Draft) -> Fact:
    assert draft.fact is not None, "it was read from a conversation"
    return draft.fact


def _make_draft(fact: Fact, messages: Sequence[Draft], conversation: ConversationDraft, res: Resources) -> Draft:
    """A fact as a draft: with the caller's options for the conversation, the time of the message it came from, and its
    speaker, if that is a person with a name, so that a question about one speaker is not answered by what another
    said."""
    source = _source_of(fact, messages)
    message = source or messages[-1]
    given: CallerFields = conversation.drafts[0].given
    options: Options = replace(conversation.drafts[0].options, record=False, summarise=False, strict_size=False)
    return Draft(
        scope=conversation.scope,
        raw=fact.text,
        text=fact.text if source and _repeats(fact, source) else None,
        given=replace(given, timestamp=message.timestamp),
        options=options,
        received_at=res.clock(),
        speech=source.speech if source and source.speech and source.speech.speaker else None,
        fact=fact,
        annotation=Annotation(fact.level, None, annotate.usable_categories(fact.categories), fact.kind),
    )


def _repeats(fact: Fact, source: Draft) -> bool:
    """Whether the fact is a part of its redacted message with who said it and dates. It is not searched for secrets
    again: to the detection "User: " announces a login."""
    statement = as_said(fact.text).partition(": ")[2]
    return not fact.also and statement != "" and statement in source.clean


def _source_of(fact: Fact, messages: Sequence[Draft]) -> Draft | None:
    """The message that a fact was read from, if known."""
    return messages[fact.message] if fact.message is not None and fact.message < len(messages) else None
