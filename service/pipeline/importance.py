"""How much does it matter? The caller's word, else the model's, else the rules' (R4.11)."""

from __future__ import annotations

from dataclasses import replace

from service.domain.draft import Draft
from service.domain.kinds import Importance
from service.language import importance, kinds
from service.resources import Resources


async def rate(draft: Draft, res: Resources) -> Draft:
    """The draft with its importance; never blocks storage."""
    return replace(draft, importance=await res.threads.run_if_long(draft.clean, _rated, draft))


def _rated(draft: Draft) -> Importance:
    if draft.asked.importance is not None:
        return draft.asked.importance
    level = draft.annotation.importance_level if draft.annotation else None
    if level is not None:
        return Importance.of_level(level)
    kind = kinds.explicit(draft.asked.type) if draft.asked.type else kinds.classify(draft.clean)
    return importance.rate(draft.clean, kind)
