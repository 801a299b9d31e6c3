"""What was said just before? A turn is often found by the question it answers (A12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.domain.draft import Context, Draft
from service.domain.text import CleanText
from service.errors import EmbeddingError
from service.language.context import ContextTurn, embedded, lexical
from service.providers.protocols import Vector
from service.resources import Resources


async def surround(drafts: Sequence[Draft], before: Sequence[ContextTurn], res: Resources) -> list[Draft]:
    """The drafts of one conversation, in order, each with its context; `before`: the turns that stand already.

    When the provider is down a turn has context words and no context vector.
    """
    said = [*before, *(turn_of(draft) for draft in drafts)]
    places = range(len(before), len(said))
    texts = [lexical(said[place], said[:place]) for place in places]
    vectors = await _vectors(drafts, [embedded(said[place], said[:place]) for place in places], res)
    return [
        replace(draft, context=Context(text, vector))
        for draft, text, vector in zip(drafts, texts, vectors, strict=True)
    ]


def turn_of(draft: Draft) -> ContextTurn:
    """The draft as a turn, by the speaker's name or the role."""
    spoken = draft.speech
    return ContextTurn(draft.clean, (spoken.speaker or spoken.role) if spoken else None)


async def _vectors(drafts: Sequence[Draft], texts: Sequence[CleanText], res: Resources) -> Sequence[Vector | None]:
    try:
        return await res.embedder.embed(drafts[0].scope.workspace_id, texts)
    except EmbeddingError:
        return [None] * len(texts)
