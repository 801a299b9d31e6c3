"""Is the text of a size that makes a good memory?"""

from __future__ import annotations

from dataclasses import replace

from service.domain.draft import Draft
from service.errors import TooLarge
from service.language import advice
from service.resources import Resources
from service.settings import Settings


async def check(draft: Draft, res: Resources) -> Draft:
    """Adds warnings; raises TooLarge beyond the hard limit under strict limits (R4.24)."""
    found = weigh(draft.raw, strict=draft.options.strict_size and not draft.options.record, settings=res.settings)
    hints = () if draft.options.record else await res.threads.run_if_long(draft.raw, advice.warnings, draft.raw)
    return replace(draft, warnings=(*draft.warnings, *found, *hints))


def weigh(text: str, *, strict: bool, settings: Settings) -> tuple[str, ...]:
    """Warnings about the length in characters; exactly at a limit passes (C35)."""
    length = len(text)
    if strict and length > settings.content_hard_limit:
        raise TooLarge(
            f"content has {length} characters; with limits=strict at most {settings.content_hard_limit} are accepted.",
            field="content",
        )
    warnings = []
    if length > settings.content_soft_limit:
        warnings.append(f"long_content: {length} characters; memories of 150 to 300 are found best.")
    if length > settings.content_long_limit:
        warnings.append(f"very_long_content: above {settings.content_long_limit} characters embeddings lose detail.")
    return tuple(warnings)
