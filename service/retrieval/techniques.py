"""What is done with a question before it is asked, beside embedding it?

Self-query reads filters out of it; query expansion and HyDE add texts whose vectors are averaged with the question's
(as Gao et al. 2022 do for HyDE), so that the search stays one. A model does it where there is one and it answers;
else rules do, or the technique is left out and says so. None of them can fail a search.

A request ("Book me a flight to Rome") is near to every short wish and order. So what all requests have in common is
taken out of its vector, and its words count as a note's do, too.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
from pydantic import BaseModel

from service.curator import model_calls
from service.domain import filters
from service.domain.filters import Filter
from service.domain.kinds import MemoryType
from service.domain.query import EVER, Query, TechniqueUse, Window
from service.domain.text import CleanText
from service.errors import EmbeddingError, InvalidInput, LlmError
from service.language import tags as tagging
from service.language import temporal
from service.language.statement import statement
from service.providers.budget import overall_remaining_s
from service.providers.json_reply import parse_reply
from service.providers.protocols import LlmRequest, Vector
from service.resources import Resources
from service.retrieval import prompts
from service.retrieval.stopwatch import elapsed_ms

MAX_STATEMENTS = 3
MAX_CHARS = 1_000
"""Of a text that a model adds no more than this is embedded, and no longer text is read as a request."""

_NO_MODEL = "skipped: there is no language model"
_FAILED = "the language model did not answer"
_RULES = "by rules"
_MODEL = "by the language model"

_KIND = re.compile(
    r"^\s*(?:(?:what|which)(?:\s+(?:are|were|of))?|list|show(?:\s+me)?)\s+(?:all\s+)?(?:of\s+)?"
    r"(?:(?:my|our|the|his|her|their)\s+)?(?P<kind>decision|pattern|preference|habit|insight)s\b",
    re.IGNORECASE,
)
_TAGGED = re.compile(r"(?:\btagged(?:\s+(?:as|with))?\s+|(?<!\w)#)[\"']?(?P<tag>[\w][\w:/.-]*)", re.IGNORECASE)


COMMON = tuple(
    CleanText(text)
    for text in (
        "Suggest something for me.",
        "Find me a good one.",
        "Help me plan it.",
        "What should I do?",
        "Which one should I choose?",
        "Book one for me.",
    )
)
COMMON_SHARE = 0.5
"""How much of it is taken out of a request. 0.4 to 0.7 were alike on requests over stored preferences."""


class _Statements(BaseModel):
    statements: list[Any] = []


class _Note(BaseModel):
    note: Any = None


Said = TypeVar("Said", bound=BaseModel)


class _Filters(BaseModel):
    start: Any = None
    end: Any = None
    types: Any = None
    tags: Any = None
    filters: Any = None


@dataclass(frozen=True, slots=True)
class Widened:
    """Texts beside the question, to be embedded as notes are, and what each technique did."""

    texts: tuple[CleanText, ...]
    used: dict[str, TechniqueUse]


@dataclass(frozen=True, slots=True)
class Embedded:
    """What is searched with, None without an embedder; `plain`: the question's own vector when that is another one."""

    searched: Vector | None
    plain: Vector | None = None
    used: dict[str, TechniqueUse] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


async def narrowed(query: Query, res: Resources) -> tuple[Query, dict[str, TechniqueUse]]:
    """The query with the filters that its text asks for (self-query); a filter that the caller gave stays."""
    if not query.ranking.techniques.self_query:
        return query, {}
    began, how, found = time.perf_counter(), _RULES, None
    reference, zone = query.reference or res.clock(), query.timezone or res.settings.timezone
    if res.llm is not None:
        asked = prompts.self_query(query.text, reference=reference, timezone=zone)
        try:
            reply = await _asked(query, asked, _Filters, res)
            found, how = _read(query, reply), _MODEL
        except LlmError:
            how = f"{_RULES}: {_FAILED}"
    if found is None:
        found = await res.threads.run(_by_rules, query, reference, ZoneInfo(zone))
    old, new = query.narrow, found.narrow
    changed = {
        "time": query.window != found.window,
        "types": old.types != new.types,
        "tags": old.tags != new.tags,
        "filters": old.filters != new.filters,
    }
    added = [name for name, differs in changed.items() if differs]
    note = f"{how}: {', '.join(added)}" if added else f"{how}: nothing to filter by"
    return found, {"self_query": TechniqueUse(elapsed_ms(began), len(added), note)}


async def widened(query: Query, res: Resources) -> Widened:
    """The texts of query expansion and HyDE; both ask at the same time."""
    on = query.ranking.techniques
    if not (on.query_expansion or on.hyde):
        return Widened((), {})
    wanted = {"query_expansion": (on.query_expansion, _expanded), "hyde": (on.hyde, _imagined)}
    running = {name: ask(query, res) for name, (switched, ask) in wanted.items() if switched}
    found = dict(zip(running, await asyncio.gather(*running.values()), strict=True))
    texts = tuple(dict.fromkeys(text for each, _ in found.values() for text in each))
    return Widened(texts, {name: used for name, (_, used) in found.items()})


async def embedded(
    query: Query, text: CleanText, more: Sequence[CleanText], res: Resources, *, request: bool
) -> Embedded:
    """One vector for the question and what was added to it, `request`: as one; none, with a warning, when the embedder
    is away."""
    began, owner = time.perf_counter(), query.scope.workspace_id
    request = request and query.ranking.techniques.requests and len(text) <= MAX_CHARS
    told_of = [text, *more] if request else more
    try:
        async with asyncio.timeout(overall_remaining_s()):
            if not told_of:
                return Embedded(await res.embedder.embed_query(owner, text))
            asking_both = res.embedder.embed_query(owner, text), res.embedder.embed(owner, told_of)
            asked, told = await asyncio.gather(*asking_both)
            mean = np.mean([asked, np.mean(told, axis=0)], axis=0, dtype=np.float32)
            if request:
                mean = mean - COMMON_SHARE * await _common(owner, res)
    except (EmbeddingError, TimeoutError):
        return Embedded(None, warnings=("embedding_unavailable: vectors were not searched.",))
    length = float(np.linalg.norm(mean))
    searched = np.asarray(mean / length, dtype=np.float32) if length > 1e-6 else asked
    return Embedded(searched, asked, {"requests": TechniqueUse(elapsed_ms(began), 1, _RULES)} if request else {})


async def _common(owner: UUID, res: Resources) -> Vector:
    """What requests have in common: the mean vector of some that ask for nothing in particular. Once per process."""
    found = res.common.get(res.embedder.model)
    if found is None:
        asked = [await res.embedder.embed_query(owner, text) for text in COMMON]
        told = await res.embedder.embed(owner, COMMON)
        found = res.common[res.embedder.model] = np.mean([*asked, *told], axis=0, dtype=np.float32)
    return found


async def _expanded(query: Query, res: Resources) -> tuple[list[CleanText], TechniqueUse]:
    began = time.perf_counter()
    how = _RULES
    if res.llm is not None:
        try:
            reply = await _asked(query, prompts.expand(query.text), _Statements, res)
            if told := _texts(reply.statements)[:MAX_STATEMENTS]:
                return told, TechniqueUse(elapsed_ms(began), len(told), _MODEL)
        except LlmError:
            how = f"{_RULES}: {_FAILED}"
    turned = statement(query.text)
    if turned is None:
        return [], TechniqueUse(elapsed_ms(began), 0, f"{how}: no rule fits")
    return [CleanText(turned)], TechniqueUse(elapsed_ms(began), 1, how)


async def _imagined(query: Query, res: Resources) -> tuple[list[CleanText], TechniqueUse]:
    began = time.perf_counter()
    if res.llm is None:
        return [], TechniqueUse(0.0, 0, _NO_MODEL)
    try:
        reply = await _asked(query, prompts.hyde(query.text), _Note, res)
    except LlmError:
        return [], TechniqueUse(elapsed_ms(began), 0, f"skipped: {_FAILED}")
    told = _texts([reply.note])
    return told, TechniqueUse(elapsed_ms(began), len(told), _MODEL if told else "skipped: the answer could not be used")


async def _asked(query: Query, ask: LlmRequest, shape: type[Said], res: Resources) -> Said:
    """What the model says, soon: somebody waits for the search. Raises LlmError."""
    soon = replace(ask, deadline_s=min(ask.deadline_s, res.settings.technique_timeout_s))
    return (await model_calls.complete_as(res, query.scope.workspace_id, soon, shape))[0]


def _texts(said: Sequence[object]) -> list[CleanText]:
    return [CleanText(each.strip()[:MAX_CHARS]) for each in said if isinstance(each, str) and each.strip()]


def _read(query: Query, reply: _Filters) -> Query:
    """What is usable of a model's answer; a time that is none, an unknown type, a filter that cannot be asked are left
    out (R7.22)."""
    start, end = _moment(reply.start), _moment(reply.end)
    usable = (start or end) and not (start and end and start >= end)
    types = reply.types if isinstance(reply.types, list) else []
    tags = reply.tags if isinstance(reply.tags, list) else []
    return _narrower(
        query,
        Window(start, end) if usable else EVER,
        [kind for kind in MemoryType if kind in types],
        [each for each in tags if isinstance(each, str)],
        _filter(reply.filters),
    )


def _filter(raw: object) -> Filter | None:
    if isinstance(raw, str):  # as it is asked for; some models give the object itself
        raw = parse_reply(raw)
    if not isinstance(raw, Mapping) or not raw:
        return None
    try:
        return filters.read(raw)
    except InvalidInput:
        return None


def _by_rules(query: Query, reference: datetime, zone: ZoneInfo) -> Query:
    kind = _KIND.match(query.text)
    return _narrower(
        query,
        Window(*(temporal.window(query.text, reference, zone) or (None, None))),
        [MemoryType(kind["kind"].capitalize())] if kind else [],
        [match["tag"] for match in _TAGGED.finditer(query.text)],
        None,
    )


def _narrower(
    query: Query, window: Window, types: Sequence[MemoryType], tags: Sequence[str], tree: Filter | None
) -> Query:
    """The query narrowed by what it did not say itself."""
    old = query.narrow
    narrow = replace(
        old,
        types=old.types or tuple(map(str, types)),
        tags=old.tags or tagging.normalise(tags),
        filters=old.filters or tree,
    )
    return replace(query, window=window if query.window.is_open else query.window, narrow=narrow)


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
