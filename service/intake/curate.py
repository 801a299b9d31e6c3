"""Facts of a conversation (infer=true): extracted, compared with what is known, and stored.

Redaction, extraction, and for each fact its embedding, its nearest memories and a decision come before the transaction.
In it, under the scope lock, those memories are checked again; then the turns are written together with what was
decided. When the model fails, the rules find what they can at once, and a job lets the model read the same turns again:
soon, or on the next day if its daily budget is used up. That job also reads what a cut-off answer did not reach.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np

from service.conversations.statements import conversations
from service.conversations.statements.turns import NewTurn, StoredTurn
from service.domain.decision import Action, Neighbour
from service.domain.draft import Draft
from service.domain.errors import AnswerCut, Conflict, LlmError, PiiRejected
from service.domain.fact import Fact
from service.domain.job import LONG_MAX_ATTEMPTS, NewJob
from service.domain.memory import Outcome, StoreResult
from service.domain.moments import elapsed_ms
from service.domain.request import Call
from service.erasure import forget_asked
from service.intake import fact_reading
from service.intake.conversation import ConversationDraft, new_turn
from service.intake.fact_reading import fact_of
from service.language import lexemes
from service.memories import decide, edits, pipeline, writing
from service.memories.pipeline import add_time
from service.memories.statements import history, sources
from service.memories.statements.sources import SourceLink
from service.memories.store import until_it_holds
from service.postgres.direct import NewRows
from service.postgres.engine import Session
from service.providers.protocols import Vector
from service.queue.statements import queue
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import write_transaction
from service.understanding import model_or_rules
from service.understanding.compare import relate
from service.understanding.model_or_rules import ShownClaim

READ_BY_RULES = "read_by_rules: the rules read the messages; they are kept, and the language model reads them later."

ECHO_CANDIDATES = 20
"""Memories that an assistant's sentence is compared with: it may combine several of them."""

BEARS_ON = 0.2
"""Similarity below which two facts of a conversation are not compared; low, as values of a slot may differ much."""


@dataclass(frozen=True, slots=True)
class ReadConversation:
    """A conversation that was read for its facts. `related`: the places of facts that an earlier one affects;
    `read_again_at`: when the model is to read the turns again, if it is."""

    conversation: ConversationDraft
    turns: Sequence[NewTurn]
    related: frozenset[int]
    forgetting: forget_asked.ForgettingInTalk
    read_again_at: datetime | None


class TurnsGone(Conflict):
    """Some of the turns were erased in the meantime, so their facts must not stay. The others can be curated again."""

    retryable = True


async def curate(conversation: ConversationDraft, res: Resources, call: Call) -> StoreResult:
    """Stores the facts of the conversation: each is added, merged, or replaces what it retires. Turns that are already
    stored wait for the model: LlmError or AnswerCut is raised and nothing is written."""
    res = res.with_deferred_caches()
    messages, warnings = await _redact(conversation.drafts, res)
    if conversation.instruction:
        conversation = replace(conversation, instruction=(await pii.clean(conversation.instruction, "prompt", res))[0])
    asked = await forget_asked.read(messages, conversation.scope, res)
    utterances = forget_asked.without_requests([fact_reading.source_message(draft) for draft in messages], asked)
    began = time.perf_counter()
    read_again_at = None
    try:
        extracted, vectors = await fact_reading.read(utterances, messages, conversation, res)
    except LlmError as exc:
        if conversation.stored is not None:
            raise
        warnings = (*warnings, exc.as_warning(""), *(() if call.dry_run else (READ_BY_RULES,)))
        read_again_at = res.clock() + timedelta(seconds=(exc.retry_after_s or 0) if exc.pauses else 0)
        conversation = without_model(conversation)
        extracted, vectors = await fact_reading.read(utterances, messages, conversation, res)
    if extracted.is_cut:
        if conversation.stored is not None:
            raise AnswerCut(f"The answer of {extracted.source} was cut off.")
        read_again_at = res.clock()
    new_turns = await _new_turns(messages, vectors, conversation, res)
    facts, skipped = await fact_reading.prepare(extracted, messages, conversation, res, {"extract": elapsed_ms(began)})
    warnings = (*warnings, *extracted.warnings, *skipped)
    warnings += tuple(dict.fromkeys(request.warning for request in asked))
    forgetting = forget_asked.ForgettingInTalk(asked, messages, conversation.scope)
    read = ReadConversation(conversation, new_turns, await _find_related(facts, res), forgetting, read_again_at)
    if not facts and not asked:
        warnings += (f"no_facts: {extracted.why_none or 'none of them could be kept'}.",)

    async def attempt(*, last: bool) -> StoreResult:
        nonlocal facts
        facts = await _decide(facts, res)
        of_decisions = dict.fromkeys(warning for fact in facts if fact.decision for warning in fact.decision.warnings)
        return await _write(read, facts, (*warnings, *of_decisions), res, call, last=last)

    return await until_it_holds(attempt)


def without_model(conversation: ConversationDraft) -> ConversationDraft:
    """The conversation, to be read by the rules alone."""
    drafts = [replace(draft, options=replace(draft.options, use_llm=False)) for draft in conversation.drafts]
    return replace(conversation, drafts=drafts)


async def _redact(drafts: Sequence[Draft], res: Resources) -> tuple[list[Draft], tuple[str, ...]]:
    """The messages that may be kept. One that announces a secret is left out, unless there is no other."""
    kept, warnings = [], []
    for index, draft in enumerate(drafts):
        try:
            kept.append(await pii.redact(await pipeline.check_size(draft, res), res))
        except PiiRejected:
            if len(drafts) == 1:
                raise
            warnings.append(f"messages[{index}]: left out, pii_rejected.")
    if not kept:
        raise PiiRejected("Every message announces a secret that cannot be cut out.", field="messages")
    return kept, tuple(warnings)


async def _new_turns(
    messages: Sequence[Draft], vectors: Sequence[Vector], conversation: ConversationDraft, res: Resources
) -> list[NewTurn]:
    """The messages as turns; none if none are to be written. Without `vectors` a job makes them later."""
    if conversation.stored is not None:
        return []
    each_vector: Sequence[Vector | None] = vectors or [None] * len(messages)
    return [
        new_turn(draft, vector, await res.rules.run_if_long(len(draft.clean), lexemes.weights, draft.clean))
        for draft, vector in zip(messages, each_vector, strict=True)
    ]


async def _decide(facts: Sequence[Draft], res: Resources) -> list[Draft]:
    """Decides about each fact, next to the memories nearest to it."""
    if not facts:
        return []
    workspace_id, llm = facts[0].scope.workspace_id, facts[0].options.use_llm
    async with res.db.read(workspace_id, generic_plans=True) as session:
        seen = [(await decide.find_neighbours(session, fact, res)).neighbours for fact in facts]
        recalled = [await _find_recalled(session, fact, res) for fact in facts]
    began = time.perf_counter()
    drafts = [replace(draft, seen=shown) for draft, shown in zip(facts, seen, strict=True)]
    known = [
        decide.without_judgement(draft, res.settings) or model_or_rules.echo_decision(draft.claim, neighbours)
        for draft, neighbours in zip(drafts, recalled, strict=True)
    ]
    asked = [
        ShownClaim(draft.claim, draft.seen, fact_of(draft).comparison)
        for draft, decision in zip(drafts, known, strict=True)
        if decision is None
    ]
    answers = iter(await model_or_rules.decide(asked, workspace_id, res, llm=llm) if asked else ())
    spent_ms = {"decide": elapsed_ms(began)}
    decided = [decision or next(answers) for decision in known]
    pending = [decide.with_texts(decision, draft, res) for decision, draft in zip(decided, drafts, strict=True)]
    decided = [await pending[0]] if len(pending) == 1 else await asyncio.gather(*pending)  # one without a task
    return [
        add_time(replace(draft, decision=decision), spent_ms) for draft, decision in zip(drafts, decided, strict=True)
    ]


async def _find_recalled(session: Session, draft: Draft, res: Resources) -> Sequence[Neighbour]:
    """Texts that the assistant may have repeated; none for a fact in the user's own words."""
    if not fact_of(draft).by_assistant:
        return ()
    return (await decide.find_neighbours(session, draft, res, limit=ECHO_CANDIDATES)).neighbours


async def _write(
    read: ReadConversation,
    facts: Sequence[Draft],
    warnings: tuple[str, ...],
    res: Resources,
    call: Call,
    *,
    last: bool,
) -> StoreResult:
    """Writes turns and facts; with `read_again_at` also a job that lets the model read the turns then."""
    conversation, forgetting, scope = read.conversation, read.forgetting, read.conversation.scope
    async with write_transaction(scope, res, call) as write:
        session = write.session
        facts = [await decide.confirm(session, draft, res, last=last) for draft in facts]
        again = read.read_again_at is not None
        places, turn_rows = await _append_or_lock_turns(session, conversation, read.turns, res, consolidated=not again)
        batch = writing.MemoryBatch(write)
        batch.add(*turn_rows)
        outcomes, links = await _carry_out(batch, facts, read.related, places)
        # what was written here cannot be erased before the commit; a memory that was only confirmed can
        sure = [link for link in links if turn_rows and link.memory_id in batch.changed]
        unsure = [link for link in links if link not in sure]
        batch.add(sources.new_rows(scope, sure), writing.audit_rows(write, scope, outcomes))
        if (caches := res.context.deferred) and not unsure:
            # the last statement but that of the idempotency key, which no other request has locked
            batch.add(caches.take_answers(scope.workspace_id))
        await batch.flush()
        await sources.link(session, unsure)
        await writing.withdraw_older(session, outcomes)
        outcomes += await forget_asked.carry_out(write, forgetting, places)
        if again:  # only what was asked to be forgotten goes; statements about it before the request must stay
            first = replace(forgetting.messages[0], options=replace(forgetting.messages[0].options, may_delete=False))
            payload = conversation.turns_to_json(first, places[0].conversation_id, places[0].index, places[-1].index)
            job = NewJob("consolidate", payload=payload, run_after=read.read_again_at, max_attempts=LONG_MAX_ATTEMPTS)
            await queue.enqueue(session, [job])
        return await write.answer(StoreResult(tuple(outcomes), warnings))


async def _carry_out(
    batch: writing.MemoryBatch,
    facts: Sequence[Draft],
    related: frozenset[int],
    places: Sequence[StoredTurn],
) -> tuple[list[Outcome], list[SourceLink]]:
    """Carries out the decisions in order; returns their outcomes, and the turns that the memories came from."""
    outcomes: list[Outcome] = []
    links: list[SourceLink] = []
    linked: set[tuple[UUID, UUID]] = set()
    touched = {target for draft in facts if draft.decision for target in draft.decision.targets}
    if len(touched) > 1:
        await history.lock(batch.session, touched)
    for index, draft in enumerate(facts):
        assert draft.decision is not None
        if batch.changed & draft.decision.targets or index in related:  # an earlier fact of the turns affects it
            await batch.flush()
            draft = await decide.confirm(batch.session, draft, batch.write.res, last=True)
            await sources.link(batch.session, links)  # a change withdraws the sources of its memory
            linked |= {(link.memory_id, link.turn_id) for link in links}
            links.clear()
        done = await edits.carry_out(batch, draft, conversation_id=places[0].conversation_id)
        outcomes.extend(done)
        struck = {strike.memory.id for strike in draft.decision.strikes} if draft.decision else set()
        changes = [outcome for outcome in done if outcome.event is not Action.NONE]
        links.extend(  # to the memories that the turn changed, if there are any
            SourceLink(outcome.kept_as or outcome.memory_id, places[message].id, start, end)
            for outcome in changes or done
            for message, start, end in _list_spans(fact_of(draft))
            if outcome.memory_id and outcome.memory_id not in struck and outcome.event is not Action.DELETE
        )
    return outcomes, [link for link in links if (link.memory_id, link.turn_id) not in linked]


async def _find_related(facts: Sequence[Draft], res: Resources) -> frozenset[int]:
    """The indexes of the facts that an earlier one of the same conversation affects. Each is compared with as many of
    the earlier ones as it is with stored memories, the nearest."""
    if len(facts) < 2:
        return frozenset()
    unknown = np.full(res.embedder.dimension, np.nan, dtype=np.float32)
    vectors = np.stack([unknown if draft.vector is None else draft.vector for draft in facts])

    def is_affected(index: int) -> bool:
        claim = facts[index].claim
        cosines = vectors[:index] @ vectors[index]
        cosines[np.isnan(cosines)] = 1.0  # a pair without a vector is compared by its texts
        return any(
            near >= BEARS_ON
            and relate(
                claim.text,
                facts[earlier].clean,
                near,
                correction=claim.correction,
                change=claim.change and claim.change(vectors[earlier]),
            )
            for earlier in index - 1 - np.argsort(-cosines[::-1], kind="stable")[: decide.CANDIDATES]  # else the latest
            if (near := res.embedder.similarity(float(cosines[earlier])))
        )

    chars = sum(len(draft.clean) for draft in facts)
    affected = await res.rules.run_if_long(
        chars, lambda: [index for index in range(1, len(facts)) if is_affected(index)]
    )
    return frozenset(affected)


def _list_spans(fact: Fact) -> list[tuple[int, int | None, int | None]]:
    """The message that a fact came from (the last, if unknown) and the others that it quotes, with spans."""
    span = (-1 if fact.message is None else fact.message, fact.start, fact.end)
    return [span, *fact.also]


async def _append_or_lock_turns(
    session: Session,
    conversation: ConversationDraft,
    new_turns: Sequence[NewTurn],
    res: Resources,
    *,
    consolidated: bool,
) -> tuple[list[StoredTurn], tuple[NewRows, ...]]:
    """The places of the turns, and the rows of the new ones, still to be inserted."""
    scope = conversation.scope
    if conversation.stored is not None:
        if not await conversations.lock_turns(session, conversation.stored):
            raise TurnsGone("Some of the turns were erased while their facts were made.")
        await conversations.mark_consolidated(session, conversation.stored)
        return list(conversation.stored), ()
    return await conversations.append_turns(
        session,
        scope,
        conversation.external_id,
        new_turns,
        generation=res.generation,
        consolidated_at=res.clock() if consolidated else None,
    )
