"""The stages that a text passes before it is written, in their order.

A pipeline is a tuple of stages; a stage is a function from draft to draft. `run` takes one draft through a profile,
`run_all` the drafts of a conversation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from service.domain.draft import Draft
from service.memories import decide
from service.memories.stages import annotate, embed, size
from service.observability import metrics, tracing
from service.runtime import pii
from service.runtime.resources import Resources

Stage = Callable[[Draft, Resources], Coroutine[Any, Any, Draft]]
Together = Callable[[Sequence[Draft], Resources], Coroutine[Any, Any, list[Draft]]]

CONTENT: tuple[Stage, ...] = (
    size.check,
    pii.redact,
    size.summarise,
    embed.embed,
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

UNCOMPARED: tuple[Stage, ...] = (size.check, pii.redact, embed.embed, annotate.find_times, annotate.annotate)
"""A message stored as it is, or a new text for an existing memory, whose importance stays; not compared with other
memories. `find_times` finds the times it mentions, but no end of its validity."""

FACT: tuple[Stage, ...] = (embed.embed, annotate.find_times, annotate.annotate)
"""A fact of a conversation, already redacted; it is compared and decided on afterwards."""

TIMED_AS: Mapping[Stage, str] = {
    size.check: "size",
    pii.redact: "pii",
    size.summarise: "summarise",
    embed.embed: "embed",
    decide.compare: "dedup",
    decide.decide: "decide",
    annotate.find_times: "temporal",
    annotate.ask_model: "ask_model",
    annotate.annotate: "annotate",
}
"""The names of stages in `timings_ms` of a response: clients read these names."""

BATCHED_STAGES: Mapping[Stage, Together] = {embed.embed: embed.embed_all}
"""Stages that take all drafts in one call."""


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
            if stage in BATCHED_STAGES:
                done = await BATCHED_STAGES[stage](done, res)
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
