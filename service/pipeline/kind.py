"""Of which type is it? Explicit, then patterns, then the model, else the rules' guess, else Context (R4.16)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from service.curator import model_calls, prompts
from service.domain.draft import Draft
from service.domain.kinds import Kind, KindSource, MemoryType
from service.errors import LlmError
from service.language import kinds
from service.resources import Resources


class KindReply(BaseModel):
    type: Any
    confidence: Any = None


async def classify(draft: Draft, res: Resources) -> Draft:
    """The draft with its type; always finds one (C03)."""
    return replace(draft, kind=await res.threads.run_if_long(draft.clean, _free, draft) or await _asked(draft, res))


def _free(draft: Draft) -> Kind | None:
    if draft.asked.type is not None:
        return kinds.explicit(draft.asked.type, draft.asked.type_confidence)
    return kinds.classify(draft.clean)


async def _asked(draft: Draft, res: Resources) -> Kind:
    may_ask = draft.options.use_llm and res.settings.classifier_use_llm and not draft.options.record
    if not may_ask:  # R4.23: without that step unmatched text is Context
        return kinds.UNCLASSIFIED_UNASKED
    if res.llm is None:
        return await res.threads.run_if_long(draft.clean, kinds.guess, draft.clean) or kinds.UNCLASSIFIED_UNASKED
    try:
        reply, _ = await model_calls.complete_as(
            res, draft.scope.workspace_id, prompts.classify(draft.clean), KindReply
        )
    except LlmError:
        return kinds.UNCLASSIFIED_FAILED
    return read(reply)


def read(reply: KindReply) -> Kind:
    """The model's type; an unknown one is Context at 0.5 (R4.21)."""
    if not isinstance(reply.type, str) or reply.type not in set(MemoryType):
        return kinds.UNCLASSIFIED_UNASKED
    usable = isinstance(reply.confidence, int | float) and 0 <= reply.confidence <= 1
    return Kind(MemoryType(reply.type), float(reply.confidence) if usable else 0.5, KindSource.LLM)
