"""Vectors of texts and of the turns around them. One vector serves deduplication and retrieval."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from service.domain.draft import Draft, EmbeddingStatus, TurnContext
from service.domain.errors import EmbeddingError
from service.domain.text import CleanText, content_hash
from service.language.context import ContextTurn, embedded_text, lexical_text
from service.providers.protocols import Vector
from service.providers.windows import unit
from service.runtime.resources import Resources
from service.understanding import outdating

WINDOW_HINT_CHARS = 800
"""Shorter texts get no warning: hosted models read them whole, the local one in two or three windows."""


async def embed(draft: Draft, res: Resources) -> Draft:
    """The draft with hash and vector, or with a placeholder and a warning when the provider is down."""
    return (await embed_all([draft], res))[0]


async def embed_all(drafts: Sequence[Draft], res: Resources) -> list[Draft]:
    """All drafts in one call to the provider."""
    hashed = [replace(draft, hash=content_hash(draft.clean)) for draft in drafts]
    waiting = [draft for draft in hashed if draft.given.embedding is None and not draft.options.embed_later]
    vectors = iter(await _vectors(waiting, res))
    return [await _with_vector(draft, vectors, res) for draft in hashed]


async def _with_vector(draft: Draft, vectors: Iterator[Vector | None], res: Resources) -> Draft:
    if draft.given.embedding is not None:
        return replace(draft, vector=unit(draft.given.embedding), embedding_status=EmbeddingStatus.STORED)
    if draft.options.embed_later:
        return replace(draft, vector=None, embedding_status=EmbeddingStatus.QUEUED)
    vector = next(vectors)
    if vector is None:
        return replace(
            draft,
            vector=placeholder(draft.clean, res.embedder.dimension),
            embedding_status=EmbeddingStatus.PLACEHOLDER,
            warnings=(*draft.warnings, "embedding_unavailable: stored without a vector, which follows later."),
        )
    warnings = draft.warnings
    if len(draft.clean) > WINDOW_HINT_CHARS:
        count, whole = await res.embedder.windows(draft.clean)
        if count > 1:
            warnings += (f"embedded_in_windows: {count} windows were averaged{'' if whole else ', the rest was cut'}.",)
    change = outdating.weigh(vector, res.embedder.model)
    return replace(draft, vector=vector, change=change, embedding_status=EmbeddingStatus.STORED, warnings=warnings)


async def _vectors(drafts: Sequence[Draft], res: Resources) -> Sequence[Vector | None]:
    if not drafts:
        return ()
    try:
        return await res.embedder.embed(drafts[0].scope.workspace_id, [draft.clean for draft in drafts])
    except EmbeddingError:
        if len(drafts) == 1:
            return (None,)
    # one bad text must not deprive the others of their vectors
    return [(await _vectors([draft], res))[0] for draft in drafts]


def placeholder(text: CleanText, dimension: int) -> Vector:
    """A unit vector that depends on the text alone. Takes no part in deduplication or ranking."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return unit(np.random.default_rng(seed).standard_normal(dimension).astype(np.float32))


async def add_turn_contexts(drafts: Sequence[Draft], before: Sequence[ContextTurn], res: Resources) -> list[Draft]:
    """The drafts of one conversation, in order, each with its context; `before`: the turns already stored.

    When the provider is down, a turn has context words but no context vector.
    """
    turns = [*before, *(turn_of(draft) for draft in drafts)]
    places = range(len(before), len(turns))
    texts = [lexical_text(turns[place], turns[:place]) for place in places]
    vectors = await _context_vectors(drafts, [embedded_text(turns[place], turns[:place]) for place in places], res)
    return [
        replace(draft, context=TurnContext(text, vector))
        for draft, text, vector in zip(drafts, texts, vectors, strict=True)
    ]


def turn_of(draft: Draft) -> ContextTurn:
    """The draft as a turn, by the speaker's name or the role."""
    spoken = draft.speech
    return ContextTurn(draft.clean, (spoken.speaker or spoken.role) if spoken else None)


async def _context_vectors(
    drafts: Sequence[Draft], texts: Sequence[CleanText], res: Resources
) -> Sequence[Vector | None]:
    try:
        return await res.embedder.embed(drafts[0].scope.workspace_id, texts)
    except EmbeddingError:
        return [None] * len(texts)
