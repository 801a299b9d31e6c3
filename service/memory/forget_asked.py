"""What a user asks to forget in a message: planned before the transaction, deleted in it, and said in the answer.

It deletes and never purges, and takes nothing where it is not clear what is meant: then the answer says what was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.db.engine import Session
from service.db.episodes import withdrawn
from service.db.episodes.turns import StoredTurn
from service.domain.conversation import WithdrawnSpan
from service.domain.decision import Action
from service.domain.draft import Dedup, DedupAction, Draft
from service.domain.forgetting import ForgetPlan, ForgetScope
from service.domain.memory import Outcome
from service.domain.request import WriteContext
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.domain.text import CleanText
from service.language import forget_requests, lexemes
from service.language.forget_requests import ForgetWish
from service.language.talk import Utterance
from service.memory import forget_matched, forget_plan
from service.resources import Resources

ALIKE = 0.5
"""Shared content words of a statement and a text, of all they have, from which the text says it."""

NO_RIGHT = "forget_refused: this key may not delete, so nothing was forgotten."
UNCLEAR = (
    "forget_unclear: nothing was forgotten, for several memories may be meant: {found}. POST /v1/forget takes ids."
)
UNKNOWN = "forget_unclear: nothing that is known says what was to be forgotten."
DONE = "forgotten: {memories} memories and {sentences} sentences of turns."
SHOWN = 3

MOST_ASKED = 10
"""Requests to forget of one conversation that are carried out: each reads all texts of the scope."""

TOO_MANY = f"forget_unclear: more than {MOST_ASKED} things were to be forgotten; only the first {MOST_ASKED} count."


@dataclass(frozen=True, slots=True)
class AskedToForget:
    """A request in the message at this place. `plan`: what goes, None where nothing does."""

    message: int
    wish: ForgetWish
    plan: ForgetPlan | None
    warning: str


@dataclass(frozen=True, slots=True)
class ForgettingInTalk:
    """The requests of a conversation's messages, and its scope."""

    asked: Sequence[AskedToForget]
    messages: Sequence[Draft]
    scope: Scope


async def read(messages: Sequence[Draft], scope: Scope, res: Resources) -> tuple[AskedToForget, ...]:
    """The requests of the messages, each with what it means; none where two people talk to each other."""
    names = {draft.speech.speaker for draft in messages if draft.speech is not None and draft.speech.role == "user"}
    if len(names) > 1:
        return ()
    asked: list[AskedToForget] = []
    for place, draft in enumerate(messages):
        if draft.speech is None or draft.speech.role != "user":
            continue
        for wish in await res.rules.run_if_long(len(draft.clean), forget_requests.find, draft.clean):
            if len(asked) < MOST_ASKED:
                asked.append(await _planned(place, wish, draft, scope, res))
            else:
                asked.append(AskedToForget(place, wish, None, TOO_MANY))
    return tuple(asked)


def without_requests(said: Sequence[Utterance], asked: Sequence[AskedToForget]) -> list[Utterance]:
    """The messages without their requests, which are no facts."""
    wishes: dict[int, list[ForgetWish]] = {}
    for each in asked:
        wishes.setdefault(each.message, []).append(each.wish)
    return [
        replace(one, text=CleanText(forget_requests.masked(one.text, wishes[place]))) if place in wishes else one
        for place, one in enumerate(said)
    ]


async def carry_out(
    session: Session,
    forgetting: ForgettingInTalk,
    places: Sequence[StoredTurn],
    res: Resources,
    request: WriteContext,
) -> list[Outcome]:
    """Deletes what was asked for, and withdraws the sentences that ask, which say it once more. In the transaction in
    which the turns were written; one outcome per memory."""
    outcomes, scope = [], forgetting.scope
    for each in forgetting.asked:
        if each.plan is None:
            continue
        plan, warnings = await forget_matched.unchanged(session, scope.workspace_id, each.plan)
        await forget_matched.delete(session, _where(scope), plan, res, request)
        here = places[each.message]
        span = WithdrawnSpan(here.id, each.wish.start, each.wish.end, "deleted")
        await withdrawn.add_to_present(session, scope.workspace_id, [span])
        await withdrawn.refresh(session, scope.workspace_id, {here.id})
        draft = replace(forgetting.messages[each.message], warnings=warnings)
        outcomes += _outcomes(draft, plan, here)
    return outcomes


def previews(asked: Sequence[AskedToForget], messages: Sequence[Draft]) -> list[Outcome]:
    """The same for a dry run."""
    return [
        one for each in asked if each.plan is not None for one in _outcomes(messages[each.message], each.plan, None)
    ]


def _outcomes(draft: Draft, plan: ForgetPlan, place: StoredTurn | None) -> list[Outcome]:
    talk = (place.conversation_id, place.index) if place is not None else (None, None)
    return [
        Outcome(draft, Action.DELETE, Dedup(DedupAction.UPDATED_EXISTING, each.id), each.id, None, each.text, *talk)
        for each in plan.memories
    ]


async def _planned(place: int, wish: ForgetWish, draft: Draft, scope: Scope, res: Resources) -> AskedToForget:
    query = CleanText(wish.query)
    plan = await forget_plan.by_query(_where(scope), wish.query, query, res)
    if wish.sort == "statement":
        plan = _alike(query, plan)
    if plan.is_empty:
        return AskedToForget(place, wish, None, UNKNOWN)
    if not draft.options.may_delete:
        return AskedToForget(place, wish, None, NO_RIGHT)
    guesses = plan.matched in ("words", "meaning") and wish.sort != "everything"
    if guesses and len(plan.memories) > 1:
        found = "; ".join(f"{each.text[:80]} ({each.id})" for each in plan.memories[:SHOWN])
        return AskedToForget(place, wish, None, UNCLEAR.format(found=found))
    done = DONE.format(memories=len(plan.memories), sentences=len(plan.sentences))
    return AskedToForget(place, wish, plan, done)


def _alike(query: CleanText, plan: ForgetPlan) -> ForgetPlan:
    """Of a plan what says most nearly the statement and nothing else."""
    scores = {each.id: _share(query, each.text) for each in plan.memories}
    best = max((*scores.values(), ALIKE))
    memories = tuple(each for each in plan.memories if scores[each.id] == best)
    kept = {each.id for each in memories}
    sentences = tuple(
        each
        for each in plan.sentences
        if (each.memory_id in kept if each.memory_id is not None else _share(query, each.text) >= best)
    )
    return replace(plan, memories=memories, sentences=sentences)


def _share(query: str, text: str) -> float:
    """Shared content words of two texts, of all they have; "User:" in front of what the user said is none."""
    one, other = (set(lexemes.lexemes(each)) - {"user"} for each in (query, text))
    return len(one & other) / len(one | other) if one | other else 0.0


def _where(scope: Scope) -> ForgetScope:
    return ForgetScope(scope, None if scope.channel == GLOBAL_CHANNEL else scope.channel)
