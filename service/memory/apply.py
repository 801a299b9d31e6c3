"""Edits of one decision carried out on the rows, under the scope lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from uuid_utils.compat import uuid7

from service.db.direct import InsertBatch
from service.db.engine import Session
from service.db.episodes.turns import StoredTurn
from service.domain.decision import Action, Decision, Edit, Evidence
from service.domain.draft import Draft, MergedText
from service.domain.memory import Outcome
from service.domain.text import CleanText, content_hash
from service.memory import contradict, place
from service.pipeline import pii
from service.resources import Resources
from service.settings import Settings


@dataclass(frozen=True, slots=True)
class Texts:
    """A text that a decision wrote, ready to be stored."""

    asked: CleanText
    merged: MergedText


def duplicate(draft: Draft) -> Decision | None:
    """An equal text is known without asking anyone; None when there is none or it does not count."""
    if not draft.options.dedup:
        return Decision((Edit(Action.ADD, None, draft.clean),), Evidence("rules", "hash", "ADD", "dedup is off", ()))
    equal = next((each for each in draft.seen if each.hash == draft.hash), None)
    if equal is None:
        return None
    return Decision((Edit(Action.NONE, equal),), Evidence("rules", "hash", "NONE", "the same text", (equal.id,)))


def added(draft: Draft, decision: Decision, warning: str) -> Decision:
    """The fact kept as it is instead of what was decided."""
    edits = (Edit(Action.ADD, None, draft.clean),)
    return replace(decision, edits=edits, warnings=(*decision.warnings, warning))


async def embedded(decision: Decision, draft: Draft, res: Resources) -> tuple[Texts, ...]:
    """The decision's own texts, redacted and embedded; raises EmbeddingError or PiiRejected."""
    own = _own_texts(decision, draft)
    if not own:
        return ()
    clean = [(await pii.clean(text, "content", res))[0] for text in own]
    vectors = await res.embedder.embed(draft.scope.workspace_id, clean)
    return tuple(
        Texts(asked, MergedText(text, content_hash(text), vector))
        for asked, text, vector in zip(own, clean, vectors, strict=True)
    )


def without_vectors(decision: Decision, draft: Draft) -> tuple[Texts, ...]:
    """The same inside the lock, where nothing can be embedded: a job makes the vectors."""
    return tuple(Texts(text, MergedText(text, content_hash(text), None)) for text in _own_texts(decision, draft))


def _own_texts(decision: Decision, draft: Draft) -> list[CleanText]:
    texts = (each.text for each in decision.edits if each.text is not None and each.text != draft.clean)
    return list(dict.fromkeys(texts))


async def carry_out(
    session: Session,
    draft: Draft,
    decision: Decision,
    texts: tuple[Texts, ...],
    turn: StoredTurn,
    res: Resources,
    waiting: InsertBatch,
    *,
    first: bool = False,
) -> list[Outcome]:
    """Carries out the edits in their order, under the workspace's policy for contradictions. The evidence is kept
    with every memory they touch; what belongs to one decision is undone together. `first`: nothing was written since
    the neighbours were read under the lock. What is merely added joins what is `waiting`; anything else reads, so it
    comes after that."""
    chosen = contradict.policy(draft, decision.edits, res.settings)
    judged = replace(draft, evidence=decision.evidence)
    several = len(decision.edits) > 1 or chosen == "supersede"
    hand = place.Hand(session, turn, res, uuid7() if several else None, first and not several)
    if first and not several and all(each.action is Action.ADD for each in decision.edits):
        hand = replace(hand, waiting=waiting)
    else:
        await waiting.flush()
    if chosen == "prefer_old":
        return await contradict.refuse(hand, judged, decision.edits)
    ready = [(edit, replace(judged, merged=_merged(edit, texts), dedup=place.dedup(edit))) for edit in decision.edits]
    if chosen == "flag_review":
        return await contradict.flag(hand, ready)
    if chosen == "supersede":
        return await contradict.supersede(hand, ready)
    outcomes = []
    for edit, one in ready:
        outcomes.append(await place.in_place(hand, one, edit))
    return outcomes


def _merged(edit: Edit, texts: Sequence[Texts]) -> MergedText | None:
    return next((each.merged for each in texts if each.asked == edit.text), None)


def preview(draft: Draft, decision: Decision | None, settings: Settings) -> list[Outcome]:
    """What would happen, for a dry run."""
    if decision is None:
        return []
    judged = replace(draft, evidence=decision.evidence)
    return [_preview(one, each) for each, one in contradict.rewrite(judged, decision.edits, settings)]


def _preview(draft: Draft, edit: Edit) -> Outcome:
    target, dedup = edit.target, place.dedup(edit)
    text = edit.text or (target.text if target else None)
    old = target.text if target and edit.action is not Action.NONE else None
    return Outcome(replace(draft, dedup=dedup), Action(edit.action), dedup, target.id if target else None, text, old)
