"""The length of a text: limits and hints, and on request a summary in place of a long text."""

from __future__ import annotations

from dataclasses import replace

from service.domain.draft import Draft
from service.domain.errors import LlmError, TooLarge
from service.domain.text import CleanText
from service.kit.settings import Settings
from service.language import advice
from service.runtime.pii import clean
from service.runtime.resources import Resources
from service.understanding import model_calls, prompts

LONG_CHARS = 10_000
"""The length of a text above which one vector no longer represents all of it; a second warning says so."""


async def check(draft: Draft, res: Resources) -> Draft:
    """The draft with warnings about its length and form; raises TooLarge beyond the hard limit under strict limits."""
    warnings = length_warnings(
        draft.raw, strict=draft.options.strict_size and not draft.options.record, settings=res.settings
    )
    hints = () if draft.options.record else await res.rules.run_if_long(len(draft.raw), advice.warnings, draft.raw)
    return replace(draft, warnings=(*draft.warnings, *warnings, *hints))


def length_warnings(text: str, *, strict: bool, settings: Settings) -> tuple[str, ...]:
    """Warnings about the length in characters; exactly at a limit passes."""
    length = len(text)
    hard_limit = settings.memories.content_hard_limit
    if strict and length > hard_limit:
        raise TooLarge(
            f"content has {length} characters; with limits=strict at most {hard_limit} are accepted.",
            field="content",
        )
    warnings = []
    if length > settings.memories.content_soft_limit:
        warnings.append(f"long_content: {length} characters; memories of 150 to 300 are found best.")
    if length > LONG_CHARS:
        warnings.append(f"very_long_content: above {LONG_CHARS} characters embeddings lose detail.")
    return tuple(warnings)


async def summarise(draft: Draft, res: Resources) -> Draft:
    """The draft with a shorter text, or with its own text and a warning if there is no model or it fails."""
    if not draft.options.summarise or len(draft.clean) <= res.settings.memories.content_soft_limit:
        return draft
    if res.llm is None or not draft.options.use_llm:
        return _not_summarised(draft, "no language model is configured")
    try:
        reply = await model_calls.complete(res, draft.scope.workspace_id, prompts.summarise(draft.clean))
    except LlmError:
        return _not_summarised(draft, "the language model failed")
    short, redactions = await clean(reply.text.strip(), "content", res)
    if not 0 < len(short) < len(draft.clean):
        return _not_summarised(draft, "the language model gave nothing shorter")
    return replace(
        draft,
        text=CleanText(short),
        original_length=len(draft.clean),
        redactions=(*draft.redactions, *redactions),
    )


def _not_summarised(draft: Draft, why: str) -> Draft:
    return replace(draft, warnings=(*draft.warnings, f"not_summarised: {why}."))
