"""One decision on one fact: known without asking, its texts made ready, and carried out under the scope lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from uuid_utils.compat import uuid7

from service.domain.decision import Action, Decision, Edit, Evidence
from service.domain.draft import Draft, MergedText
from service.domain.memory import Outcome
from service.domain.text import CleanText, content_hash
from service.episodes.statements.turns import StoredTurn
from service.kit.settings import Settings
from service.memories import edits, write
from service.postgres.direct import InsertBatch
from service.postgres.engine import Session
from service.runtime import pii
from service.runtime.resources import Resources


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text that a decision wrote: as it was decided, and redacted and embedded, ready to be stored."""

    decided: CleanText
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
    alone = (Edit(Action.ADD, None, draft.clean),)
    return replace(decision, edits=alone, warnings=(*decision.warnings, warning))


async def embedded(decision: Decision, draft: Draft, res: Resources) -> tuple[WrittenText, ...]:
    """The decision's own texts, redacted and embedded; raises EmbeddingError or PiiRejected."""
    own = _own_texts(decision, draft)
    if not own:
        return ()
    clean = [(await pii.clean(text, "content", res))[0] for text in own]
    vectors = await res.embedder.embed(draft.scope.workspace_id, clean)
    return tuple(
        WrittenText(decided, MergedText(text, content_hash(text), vector))
        for decided, text, vector in zip(own, clean, vectors, strict=True)
    )


def without_vectors(decision: Decision, draft: Draft) -> tuple[WrittenText, ...]:
    """The same inside the lock, where nothing can be embedded: a job makes the vectors."""
    return tuple(WrittenText(text, MergedText(text, content_hash(text), None)) for text in _own_texts(decision, draft))


def _own_texts(decision: Decision, draft: Draft) -> list[CleanText]:
    texts = (each.text for each in decision.edits if each.text is not None and each.text != draft.clean)
    return list(dict.fromkeys(texts))


async def carry_out(
    session: Session,
    draft: Draft,
    decision: Decision,
    texts: tuple[WrittenText, ...],
    turn: StoredTurn,
    res: Resources,
    batch: InsertBatch,
    *,
    first: bool = False,
) -> list[Outcome]:
    """Carries out the edits in their order, under the workspace's policy for contradictions.

    The evidence is kept with every memory they touch; edits of one decision are undone together. `first`: nothing was
    written since the neighbours were read under the lock. A row that is merely added joins the `batch`; anything else
    reads, so the batch is written before.
    """
    policy = edits.policy_of(draft, decision.edits, res.settings)
    draft = replace(draft, evidence=decision.evidence)
    several = len(decision.edits) > 1 or policy == "supersede"
    only_edit = first and not several
    joins = only_edit and all(each.action is Action.ADD for each in decision.edits)
    if not joins:
        await batch.flush()
    ruling_id = uuid7() if several else None
    context = edits.EditContext(session, turn, res, ruling_id, only_edit, batch if joins else None)
    if policy == "prefer_old":
        return await edits.prefer_old(context, draft, decision.edits)
    outcomes = await _by_policy(policy, context, draft, decision, texts)
    added = next((one.memory_id for one in outcomes if one.event is Action.ADD and one.memory_id), None)
    if added is not None and decision.touches_older:
        await batch.flush()
        await write.mark_older(session, draft, decision, added, res)
    return outcomes


async def _by_policy(
    policy: edits.Policy,
    context: edits.EditContext,
    draft: Draft,
    decision: Decision,
    texts: tuple[WrittenText, ...],
) -> list[Outcome]:
    ready = [(edit, replace(draft, merged=_merged(edit, texts), dedup=edits.dedup_of(edit))) for edit in decision.edits]
    if policy == "flag_review":
        return await edits.flag(context, ready)
    if policy == "supersede":
        return await edits.supersede(context, ready)
    return [await edits.in_place(context, one, edit) for edit, one in ready]


def _merged(edit: Edit, texts: Sequence[WrittenText]) -> MergedText | None:
    return next((each.merged for each in texts if each.decided == edit.text), None)


def preview(draft: Draft, decision: Decision | None, settings: Settings) -> list[Outcome]:
    """What would happen, for a dry run."""
    if decision is None:
        return []
    return edits.preview(replace(draft, evidence=decision.evidence), decision.edits, settings)
