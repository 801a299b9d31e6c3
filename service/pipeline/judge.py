"""What becomes of a text that is near to something known, but not the same?"""

from __future__ import annotations

from dataclasses import replace

from service.curator import decide as curator
from service.domain.decision import Action, Decision, Edit
from service.domain.draft import Dedup, DedupAction, Draft, Merged
from service.domain.text import content_hash
from service.errors import EmbeddingError, PiiRejected
from service.pipeline.pii import clean
from service.resources import Resources


async def decide(draft: Draft, res: Resources) -> Draft:
    """The draft with a decision. A merged text is redacted and embedded anew; if that fails both texts are kept."""
    if draft.dedup is not None:
        return draft
    shown = [each for each in draft.seen if each.similarity >= res.settings.dedup_near]
    decision = await curator.between(draft.clean, shown, draft.scope.workspace_id, res, llm=draft.options.use_llm)
    decided, written = apply(draft, decision), decision.edits[0].text
    if written is None or written == draft.clean or decided.settled:
        return decided
    try:
        text, _ = await clean(written, "content", res)
        vector = (await res.embedder.embed(draft.scope.workspace_id, [text]))[0]
    except (EmbeddingError, PiiRejected):
        kept = "merge_failed: the merged text could not be embedded, both texts were kept."
        both = apply(draft, replace(decision, edits=(Edit(Action.ADD),)))
        return replace(both, warnings=(*draft.warnings, kept))
    return replace(decided, merged=Merged(text, content_hash(text), vector))


def apply(draft: Draft, decision: Decision) -> Draft:
    """The draft under a decision of one edit; pure, so that the last attempt can decide inside the lock."""
    (edit,) = decision.edits
    target = edit.target
    if target is None:
        nearest = draft.seen[0].similarity if draft.seen else None
        return replace(draft, evidence=decision.evidence, dedup=Dedup(DedupAction.STORED_NEW, None, nearest))
    # an update that would change nothing is none: it would only make other writers decide again
    same = edit.action is Action.NONE or edit.text == target.text
    action = DedupAction.DUPLICATE_EXACT if same else DedupAction.UPDATED_EXISTING
    return replace(draft, evidence=decision.evidence, dedup=Dedup(action, target.id, target.similarity))
