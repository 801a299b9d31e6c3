"""The stages that a text passes before it is written, in their order; here those for its length and its vector.

A pipeline is a tuple of stages; a stage is a function from draft to draft. `run` takes one draft through a pipeline,
`run_all` the drafts of a conversation.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from service.domain.draft import Draft, EmbeddingStatus
from service.domain.errors import EmbeddingError, LlmError, TooLarge
from service.domain.text import CleanText, content_hash
from service.kit.settings import Settings
from service.language import importance
from service.memories import annotate, decide
from service.observability import metrics, tracing
from service.providers.protocols import Vector, unit
from service.runtime import pii
from service.runtime.pii import clean
from service.runtime.resources import Resources
from service.understanding import model_calls, outdating, prompts

LONG_CHARS = 10_000
"""The length of a text above which one vector no longer represents all of it; a second warning says so."""


async def check_size(draft: Draft, res: Resources) -> Draft:
    """The draft with warnings about its length and form; raises TooLarge beyond the hard limit under strict limits."""
    warnings = length_warnings(
        draft.raw, strict=draft.options.strict_size and not draft.options.record, settings=res.settings
    )
    hints = () if draft.options.record else await res.rules.run_if_long(len(draft.raw), importance.advise, draft.raw)
    return replace(draft, warnings=(*draft.warnings, *warnings, *hints))


def length_warnings(text: str, *, strict: bool, settings: Settings) -> tuple[str, ...]:
    """Warnings about the length in characters; exactly at a limit passes."""
    length = len(text)
    hard_limit = settings.memories.content_hard_limit
    if strict and length > hard_limit:
        raise TooLarge(f"content has {length:,} characters; at most {hard_limit:,} are accepted.", field="content")
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
        _, reply = await model_calls.complete(res, draft.scope.workspace_id, prompts.summarise(draft.clean), str)
    except LlmError:
        return _not_summarised(draft, "the language model failed")
    short, redactions = await clean(reply.text.strip(), "content", res)
    if not 0 < len(short) < len(draft.clean):
        return _not_summarised(draft, "the language model returned nothing shorter")
    return replace(
        draft,
        text=CleanText(short),
        original_length=len(draft.clean),
        redactions=(*draft.redactions, *redactions),
    )


def _not_summarised(draft: Draft, why: str) -> Draft:
    return replace(draft, warnings=(*draft.warnings, f"not_summarised: {why}."))


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
            vector=_placeholder(draft.clean, res.embedder.dimension),
            embedding_status=EmbeddingStatus.PLACEHOLDER,
            warnings=(*draft.warnings, "embedding_unavailable: stored without a vector, which will be added later."),
        )
    warnings = draft.warnings
    if len(draft.clean) > WINDOW_HINT_CHARS:
        count, full = await res.embedder.windows(draft.clean)
        if count > 1:
            warnings += (f"embedded_in_windows: {count} windows were averaged{'' if full else '; the rest was cut'}.",)
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


def _placeholder(text: CleanText, dimension: int) -> Vector:
    """A unit vector that depends on the text alone. Takes no part in deduplication or ranking."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return unit(np.random.default_rng(seed).standard_normal(dimension).astype(np.float32))


Stage = Callable[[Draft, Resources], Coroutine[Any, Any, Draft]]

CONTENT: tuple[Stage, ...] = (
    check_size,
    pii.redact,
    summarise,
    embed,
    annotate.find_times,
    decide.compare,
    decide.decide,
    annotate.ask_model,
    annotate.annotate,
)
"""One text that is to become one memory. Its times come before the decision, which compares them."""

UNDECIDED: tuple[Stage, ...] = CONTENT[: CONTENT.index(decide.compare)]
"""The stages that look at the text alone."""

DECIDED_AGAIN: tuple[Stage, ...] = CONTENT[CONTENT.index(decide.compare) :]
"""Repeated when the neighbours changed between the decision and the lock."""

ANNOTATED: tuple[Stage, ...] = CONTENT[CONTENT.index(annotate.ask_model) :]
"""The stages that `run` skips for a duplicate, for the case that the duplicate is deleted before the write."""

FACT: tuple[Stage, ...] = (embed, annotate.find_times, annotate.annotate)
"""A fact of a conversation, already redacted; it is compared and decided on afterwards."""

UNCOMPARED: tuple[Stage, ...] = (check_size, pii.redact, *FACT)
"""A message stored as it is, or a new text for an existing memory, whose importance stays; not compared with other
memories. `find_times` finds the times it mentions, but no end of its validity."""

TIMED_AS: Mapping[Stage, str] = {
    check_size: "size",
    pii.redact: "pii",
    summarise: "summarise",
    embed: "embed",
    decide.compare: "dedup",
    decide.decide: "decide",
    annotate.find_times: "temporal",
    annotate.ask_model: "ask_model",
    annotate.annotate: "annotate",
}
"""The names of stages in `timings_ms` of a response: clients read these names."""


async def run(pipeline: Sequence[Stage], draft: Draft, res: Resources) -> Draft:
    """The draft after every stage of the pipeline; like `run_all`."""
    return (await run_all(pipeline, [draft], res))[0]


async def run_all(pipeline: Sequence[Stage], drafts: Sequence[Draft], res: Resources) -> list[Draft]:
    """The drafts after every stage of the pipeline, stage by stage and side by side, timed; stops when all are
    duplicates. Stages raise ServiceError."""
    done, spent_ms = list(drafts), dict[str, float]()
    for stage in pipeline:
        if all(draft.is_duplicate for draft in done):
            break
        name, began = TIMED_AS[stage], time.perf_counter()
        with tracing.span(name):
            if stage is embed:
                done = await embed_all(done, res)  # in one call
            elif len(done) == 1:
                done = [await stage(done[0], res)]
            else:
                done = list(await asyncio.gather(*(stage(draft, res) for draft in done)))
        took_s = time.perf_counter() - began
        metrics.STAGES.labels(name).observe(took_s)
        spent_ms[name] = took_s * 1000
    return [add_time(draft, spent_ms) for draft in done]


def add_time(draft: Draft, spent_ms: Mapping[str, float]) -> Draft:
    """The draft with the time of this run added to that of earlier ones."""
    before = draft.timings_ms
    added = {name: round(spent + before.get(name, 0.0), 3) for name, spent in spent_ms.items()}
    return replace(draft, timings_ms={**before, **added})
