"""What becomes of a text that is near to something known, but not the same?"""

from __future__ import annotations

from dataclasses import replace

from service.curator import decide as curator
from service.curator.decide import Action, Verdict
from service.domain.draft import Dedup, DedupAction, Draft, Merged
from service.domain.text import content_hash
from service.errors import EmbeddingError, PiiRejected
from service.pipeline.pii import clean
from service.resources import Resources


async def decide(draft: Draft, res: Resources) -> Draft:
    """The draft with a verdict. A merged text is redacted and embedded anew; if that fails both texts are kept."""
    if draft.dedup is not None:
        return draft
    shown = [each for each in draft.seen if each.similarity >= res.settings.dedup_near]
    verdict = await curator.between(draft.clean, shown, draft.scope.workspace_id, res, llm=draft.options.use_llm)
    decided = apply(draft, verdict)
    if verdict.text is None or verdict.text == draft.clean or decided.settled:
        return decided
    try:
        text, _ = await clean(verdict.text, "content", res)
        vector = (await res.embedder.embed(draft.scope.workspace_id, [text]))[0]
    except (EmbeddingError, PiiRejected):
        kept = "merge_failed: the merged text could not be embedded, both texts were kept."
        return replace(apply(draft, replace(verdict, action=Action.ADD, target=None)), warnings=(*draft.warnings, kept))
    return replace(decided, merged=Merged(text, content_hash(text), vector))


def apply(draft: Draft, verdict: Verdict) -> Draft:
    """The draft under a verdict; pure, so that the last attempt can decide inside the lock."""
    nearest = draft.seen[0].similarity if draft.seen else None
    target = verdict.target
    if target is None:
        return replace(draft, judgement=verdict.judgement, dedup=Dedup(DedupAction.STORED_NEW, None, nearest))
    # an update that would change nothing is none: it would only make other writers decide again
    same = verdict.action is Action.NONE or verdict.text == target.text
    action = DedupAction.DUPLICATE_EXACT if same else DedupAction.UPDATED_EXISTING
    return replace(draft, judgement=verdict.judgement, dedup=Dedup(action, target.id, target.similarity))
