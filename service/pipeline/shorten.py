"""Should a long text be kept in short? Only when asked for, and only with a model (R4.24, R4.25)."""

from __future__ import annotations

from dataclasses import replace

from service.curator import model_calls, prompts
from service.domain.draft import Draft
from service.domain.text import CleanText
from service.errors import LlmError
from service.pipeline.pii import clean
from service.resources import Resources


async def summarise(draft: Draft, res: Resources) -> Draft:
    """The draft with a shorter text; its own text and a warning when no model is there or it fails."""
    if not draft.options.summarise or len(draft.clean) <= res.settings.content_soft_limit:
        return draft
    if res.llm is None or not draft.options.use_llm:
        return _kept(draft, "no language model is configured")
    try:
        reply = await model_calls.complete(res, draft.scope.workspace_id, prompts.summarise(draft.clean))
    except LlmError:
        return _kept(draft, "the language model failed")
    short, redactions = await clean(reply.text.strip(), "content", res)
    if not 0 < len(short) < len(draft.clean):
        return _kept(draft, "the language model gave nothing shorter")
    return replace(
        draft,
        text=CleanText(short),
        original_length=len(draft.clean),
        redactions=(*draft.redactions, *redactions),
    )


def _kept(draft: Draft, why: str) -> Draft:
    return replace(draft, warnings=(*draft.warnings, f"not_summarised: {why}."))
