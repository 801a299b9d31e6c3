"""Which terms is a text found by, and how much does each weigh? Worked out before the write, which need not wait."""

from __future__ import annotations

from dataclasses import replace

from service.db.memories.memories import AVERAGE_LENGTH
from service.domain.draft import Draft, Words
from service.language import lexemes
from service.resources import Resources


async def weigh(draft: Draft, res: Resources) -> Draft:
    """The draft with the weights of the text that will be stored."""
    text = draft.merged.text if draft.merged else draft.clean
    weights = await res.threads.run_if_long(text, lexemes.weights, text, avgdl=AVERAGE_LENGTH)
    return replace(draft, words=Words(text, weights))
