"""Which topics does it touch? The model's words, else the taxonomy's (R4.14)."""

from __future__ import annotations

from dataclasses import replace

from service.domain.draft import Draft
from service.language import categories
from service.resources import Resources


async def name(draft: Draft, res: Resources) -> Draft:
    asked = draft.annotation.categories if draft.annotation else None
    return replace(draft, categories=asked or categories.name(draft.clean))
