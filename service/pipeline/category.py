"""Which topics does it touch? The model's words, else the taxonomy's (R4.14)."""

from __future__ import annotations

from dataclasses import replace

from service.domain.draft import Draft
from service.language import categories
from service.resources import Resources


async def name(draft: Draft, res: Resources) -> Draft:
    if draft.annotation and draft.annotation.categories:
        return replace(draft, categories=draft.annotation.categories)
    return replace(draft, categories=await res.threads.run_if_long(draft.clean, categories.name, draft.clean))
