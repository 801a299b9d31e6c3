"""Requests to forget in a user's message: planned before the transaction, carried out in it, and reported in the
answer.

They delete but never purge. If it is not clear what is meant, nothing is deleted and the answer lists the candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.conversations.statements import withdrawn
from service.conversations.statements.turns import StoredTurn
from service.domain.conversation import WithdrawnSpan
from service.domain.decision import Action
from service.domain.draft import DedupAction, DedupOutcome, Draft
from service.domain.errors import EmbeddingError
from service.domain.memory import Outcome
from service.domain.scope import GLOBAL_CHANNEL, Extent, Scope
from service.domain.text import CleanText
from service.erasure import forget_matched, forget_plan
from service.erasure.forget_plan import CLEAR_SIMILARITY, SEVERAL
from service.erasure.values import ForgetPlan
from service.language.forgetting import forget_matching, forget_query, forget_requests, request_head
from service.language.forgetting.forget_matching import ForgetText
from service.language.forgetting.forget_requests import LIKELY, SURE, ForgetWish
from service.language.talk import Utterance
from service.language.withdrawal import Span
from service.runtime.resources import Resources
from service.runtime.transactions import Write

NO_RIGHT = "forget_refused: this key may not delete, so nothing was forgotten."
UNCLEAR = "forget_unclear: no memory was forgotten, because {why}: {found}. POST /v1/forget takes ids."
UNKNOWN = "forget_unclear: no memory matches the request, so nothing was forgotten."
DONE = "forgotten: {memories} memories and {sentences} sentences of turns."
SHOWN = 3

MOST_ASKED = 10
"""The most requests of one conversation that are carried out, since each reads all texts of the scope."""

MOST_COMPARED = 20
"""The most sentences before a request, in the same messages, to which it may refer; also those of a message that may be
requests and are compared by their vectors."""

TOO_MANY = f"forget_unclear: more than {MOST_ASKED} things were to be forgotten; only the first {MOST_ASKED} count."


@dataclass(frozen=True, slots=True)
class AskedToForget:
    """A request in the message at this place. `plan`: what is deleted; None: nothing. `sentences`: those of the
    same messages that it refers to, as message and span."""

    message: int
    wish: ForgetWish
    plan: ForgetPlan | None
    warning: str
    sentences: tuple[tuple[int, int, int], ...] = ()

    @property
    def spans(self) -> tuple[tuple[int, int, int], ...]:
        """Message and span of the request and of the sentences it refers to, none of which is kept or shown."""
        return (self.message, self.wish.start, self.wish.end), *self.sentences


@dataclass(frozen=True, slots=True)
class ForgettingInTalk:
    """The requests of a conversation's messages, and its scope."""

    asked: Sequence[AskedToForget]
    messages: Sequence[Draft]
    scope: Scope


async def read(messages: Sequence[Draft], scope: Scope, res: Resources) -> tuple[AskedToForget, ...]:
    """The requests in the messages, each with its plan; none if two people talk to each other."""
    names = {draft.speech.speaker for draft in messages if draft.speech is not None and draft.speech.role == "user"}
    if len(names) > 1:
        return ()
    asked: list[AskedToForget] = []
    for index, draft in enumerate(messages):
        if draft.speech is None or draft.speech.role != "user":
            continue
        for wish in await _wishes(draft.clean, scope, res):
            if len(asked) < MOST_ASKED:
                asked.append(await _plan(index, wish, messages, scope, res))
            else:
                asked.append(AskedToForget(index, wish, None, TOO_MANY))
    return tuple(each for each in asked if each.wish.odds >= LIKELY)


async def _wishes(text: CleanText, scope: Scope, res: Resources) -> list[ForgetWish]:
    """The requests in a message, by the words and the vectors of its sentences."""
    wishes = await res.rules.run_if_long(len(text), forget_requests.find_possible, text)
    texts = [CleanText(text[each.start : each.end]) for each in wishes[:MOST_COMPARED]]
    try:
        vectors = await res.embedder.embed(scope.workspace_id, texts) if texts else []
    except EmbeddingError:
        vectors = []
    for index, wish in enumerate(wishes):
        known = index < len(vectors)
        more = request_head.vector_odds(vectors[index], res.embedder.model) if known else request_head.NO_VECTOR
        wishes[index] = replace(wish, odds=wish.odds + more)
    return forget_requests.choose_likely(text, wishes)


def without_requests(messages: Sequence[Utterance], asked: Sequence[AskedToForget]) -> list[Utterance]:
    """The messages without their requests, which are not facts, and without the sentences they refer to. The rest of
    such a message is kept without a quotation, which might be of what is to be forgotten."""
    spans: dict[int, list[Span]] = {}
    for each in asked:
        for index, start, end in each.spans:
            spans.setdefault(index, []).append((start, end))
    return [
        replace(one, text=CleanText(forget_requests.blank_out(one.text, spans[index])), stands_alone=True)
        if index in spans
        else one
        for index, one in enumerate(messages)
    ]


async def carry_out(write: Write, forgetting: ForgettingInTalk, places: Sequence[StoredTurn]) -> list[Outcome]:
    """Deletes what was asked for, and withdraws the asking sentences even if nothing was found, in the transaction that
    writes the turns; returns one outcome per memory."""
    outcomes, session, scope = [], write.session, forgetting.scope
    spans = [
        WithdrawnSpan(places[message].id, start, end, "deleted")
        for asked in forgetting.asked
        for message, start, end in asked.spans
    ]
    if spans:
        await withdrawn.add_to_present(session, spans)
        await withdrawn.refresh(session, {span.turn_id for span in spans})
    for asked in forgetting.asked:
        if asked.plan is None:
            continue
        plan, warnings = await forget_matched.drop_changed(session, asked.plan)
        await forget_matched.delete(write, _where(scope), plan)
        draft = replace(forgetting.messages[asked.message], warnings=warnings)
        outcomes += _outcomes(draft, plan, places[asked.message])
    return outcomes


def _outcomes(draft: Draft, plan: ForgetPlan, turn: StoredTurn) -> list[Outcome]:
    return [
        Outcome(
            draft,
            Action.UPDATE if target.remaining else Action.DELETE,
            DedupOutcome(DedupAction.UPDATED_EXISTING, target.id),
            target.id,
            target.remaining or None,
            target.text,
            turn.conversation_id,
            turn.index,
        )
        for target in plan.memories
    ]


async def _plan(index: int, wish: ForgetWish, messages: Sequence[Draft], scope: Scope, res: Resources) -> AskedToForget:
    draft = messages[index]
    sentences = _find_sentences(index, wish, messages) if wish.is_sure or wish.sort == "named" else ()
    if wish.sort == "said" and not sentences:
        plan = await forget_plan.last_said(_where(scope), draft, res)
    else:
        query = f"everything about {wish.query}" if wish.sort == "everything" else wish.query
        if wish.sort == "said":  # "Bence asked me not to tell you about his illness. Could you make it undone?"
            [(number, start, end)] = sentences
            query = messages[number].clean[start:end]
        plan = await forget_plan.by_query(_where(scope), query, CleanText(query), res, sort=wish.sort)
    is_known = bool(sentences) or plan.explanation == SEVERAL or plan.matched in ("identifier", "name", "words")
    if wish.sort == "named":
        wish = replace(wish, odds=max(wish.odds, SURE) if is_known else LIKELY)
    if not wish.is_sure:
        return AskedToForget(index, wish, None, _not_clear(replace(plan, near=(*plan.memories, *plan.near))))
    if plan.is_empty:
        warning = _not_clear(plan)
        says_it = wish.sort == "statement" and draft.clean.startswith(wish.query, wish.start)
        count = len(sentences) or int(says_it or (wish.has_lead and warning == UNKNOWN))
        if count:
            warning = DONE.format(memories=0, sentences=count) + ("" if warning == UNKNOWN else f" {warning}")
        return AskedToForget(index, wish, None, warning, sentences)
    if not draft.options.may_delete:
        return AskedToForget(index, wish, None, NO_RIGHT, sentences)
    done = DONE.format(memories=len(plan.memories), sentences=len(plan.sentences) + len(sentences))
    return AskedToForget(index, wish, plan, done, sentences)


def _not_clear(plan: ForgetPlan) -> str:
    several = plan.explanation == SEVERAL
    may_be = [target for target in plan.near if several or (target.probability or 1) >= CLEAR_SIMILARITY]
    near = [f"{target.text[:80]} ({target.id})" for target in may_be]
    why = "several memories may be meant" if len(near) > 1 else "it is not certain that this memory is meant"
    return UNCLEAR.format(why=why, found="; ".join(near[:SHOWN])) if near else UNKNOWN


def _find_sentences(index: int, wish: ForgetWish, messages: Sequence[Draft]) -> tuple[tuple[int, int, int], ...]:
    """The sentences before a request, in the same messages, that it refers to, as message and span."""
    earlier = [
        (number, start, end)
        for number, each in enumerate(messages[: index + 1])
        if each.speech is not None
        for start, end in forget_requests.own_sentences(each.clean)
        if number < index or end <= wish.start
    ][-MOST_COMPARED:]
    own = [each for each in earlier if (speech := messages[each[0]].speech) is not None and speech.role == "user"]
    if wish.sort == "said" or not own:
        return tuple(own[-1:])
    texts = [ForgetText(each, str(messages[each[0]].clean)[each[1] : each[2]]) for each in earlier]
    return tuple(forget_matching.match(forget_query.parse(wish.query), texts).meant)


def _where(scope: Scope) -> Extent:
    return Extent(scope, None if scope.channel == GLOBAL_CHANNEL else scope.channel)
