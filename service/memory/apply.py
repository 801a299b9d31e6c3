"""What does a ruling do to the rows? Operations of one fact, under the scope lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from uuid_utils.compat import uuid7

from service.curator.operations import Operation, Ruling, Verb
from service.db.engine import Session
from service.db.episodes.turns import StoredTurn
from service.db.memories.rows import Waiting
from service.domain.draft import Draft, Judgement, Merged
from service.domain.memory import Event, Outcome
from service.domain.text import CleanText, content_hash
from service.memory import contradict, place
from service.pipeline import pii
from service.resources import Resources
from service.settings import Settings


@dataclass(frozen=True, slots=True)
class Texts:
    """A text that a ruling wrote, ready to be stored."""

    asked: CleanText
    merged: Merged


def duplicate(draft: Draft) -> Ruling | None:
    """An equal text is known without asking anyone; None when there is none or it does not count."""
    if not draft.options.dedup:
        return Ruling((Operation(Verb.ADD, None, draft.clean),), Judgement("rules", "hash", "ADD", "dedup is off", ()))
    equal = next((each for each in draft.seen if each.hash == draft.hash), None)
    if equal is None:
        return None
    return Ruling((Operation(Verb.NONE, equal),), Judgement("rules", "hash", "NONE", "the same text", (equal.id,)))


def added(draft: Draft, ruling: Ruling, warning: str) -> Ruling:
    """The fact kept as it is instead of what was ruled."""
    operations = (Operation(Verb.ADD, None, draft.clean),)
    return replace(ruling, operations=operations, warnings=(*ruling.warnings, warning))


async def embedded(ruling: Ruling, draft: Draft, res: Resources) -> tuple[Texts, ...]:
    """The ruling's own texts, redacted and embedded; raises EmbeddingError or PiiRejected."""
    own = _own_texts(ruling, draft)
    if not own:
        return ()
    clean = [(await pii.clean(text, "content", res))[0] for text in own]
    vectors = await res.embedder.embed(draft.scope.workspace_id, clean)
    return tuple(
        Texts(asked, Merged(text, content_hash(text), vector))
        for asked, text, vector in zip(own, clean, vectors, strict=True)
    )


def without_vectors(ruling: Ruling, draft: Draft) -> tuple[Texts, ...]:
    """The same inside the lock, where nothing can be embedded: a job makes the vectors."""
    return tuple(Texts(text, Merged(text, content_hash(text), None)) for text in _own_texts(ruling, draft))


def _own_texts(ruling: Ruling, draft: Draft) -> list[CleanText]:
    texts = (each.text for each in ruling.operations if each.text is not None and each.text != draft.clean)
    return list(dict.fromkeys(texts))


async def ruling(
    session: Session,
    draft: Draft,
    ruled: Ruling,
    texts: tuple[Texts, ...],
    turn: StoredTurn,
    res: Resources,
    waiting: Waiting,
    *,
    first: bool = False,
) -> list[Outcome]:
    """Carries out the operations in their order, under the workspace's policy for contradictions. The evidence is kept
    with every memory they touch; what belongs to one ruling is undone together. `first`: nothing was written yet since
    the neighbours were read under the lock. What is merely added joins what is `waiting`; anything else reads, so it
    comes after that."""
    chosen = contradict.policy(draft, ruled.operations, res.settings)
    judged = replace(draft, judgement=ruled.judgement)
    several = len(ruled.operations) > 1 or chosen == "supersede"
    hand = place.Hand(session, turn, res, uuid7() if several else None, first and not several)
    if first and not several and all(each.verb is Verb.ADD for each in ruled.operations):
        hand = replace(hand, waiting=waiting)
    else:
        await waiting.flush()
    if chosen == "prefer_old":
        return await contradict.refuse(hand, judged, ruled.operations)
    ready = [
        (operation, replace(judged, merged=_merged(operation, texts), dedup=place.dedup(operation)))
        for operation in ruled.operations
    ]
    if chosen == "flag_review":
        return await contradict.flag(hand, ready)
    if chosen == "supersede":
        return await contradict.supersede(hand, ready)
    outcomes = []
    for operation, one in ready:
        outcomes.append(await place.in_place(hand, one, operation))
    return outcomes


def _merged(operation: Operation, texts: Sequence[Texts]) -> Merged | None:
    return next((each.merged for each in texts if each.asked == operation.text), None)


def preview(draft: Draft, ruled: Ruling | None, settings: Settings) -> list[Outcome]:
    """What would happen, for a dry run."""
    if ruled is None:
        return []
    judged = replace(draft, judgement=ruled.judgement)
    return [_preview(one, each) for each, one in contradict.rewrite(judged, ruled.operations, settings)]


def _preview(draft: Draft, operation: Operation) -> Outcome:
    target, dedup = operation.target, place.dedup(operation)
    text = operation.text or (target.text if target else None)
    old = target.text if target and operation.verb is not Verb.NONE else None
    return Outcome(replace(draft, dedup=dedup), Event(operation.verb), dedup, target.id if target else None, text, old)
