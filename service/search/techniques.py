"""Query techniques: self-query, query expansion, HyDE, and the vector of requests.

Self-query reads filters out of the query; query expansion and HyDE add texts whose vectors are averaged with the
query's (as Gao et al. 2022 do for HyDE), so that there is still one search. A language model does it. Without one,
rules read times, types and tags for self-query, and the other two are left out and reported. None of them can make a
search fail. In the prompts the query, which has passed the PII stage, stands between fences as material to be judged.

A request ("Book me a flight to Rome") is near every other short request. So what requests have in common is subtracted
from its vector, which is averaged with that of the same text as a note.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
from pydantic import BaseModel

from service.domain import filters
from service.domain.errors import InvalidInput, LlmError
from service.domain.filters import Filter
from service.domain.kinds import MemoryType
from service.domain.moments import elapsed_ms
from service.domain.query import EVER, Query, TechniqueMetrics, Window
from service.domain.text import CleanText
from service.language import temporal
from service.language.tags import normalise
from service.memories.annotate import parse_time
from service.providers.json_reply import parse_reply
from service.providers.protocols import LlmRequest, Vector
from service.runtime.resources import Resources
from service.understanding import model_calls
from service.understanding.prompts import MATERIAL, fence, schema_of

TIMEOUT_S = 5.0
"""How long a search waits for the language model."""

MAX_STATEMENTS = 3
MAX_CHARS = 1_000
"""A model's addition is cut to this length before it is embedded; a longer query does not count as a request."""

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


GENERIC_REQUESTS = tuple(
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
GENERIC_SHARE = 0.5
"""Share of their mean vector that is subtracted from a request. 0.4 to 0.7 did equally well on requests over stored
preferences."""


class _Statements(BaseModel):
    statements: list[Any] = []


class _Note(BaseModel):
    note: Any = None


Shape = TypeVar("Shape", bound=BaseModel)


class _Filters(BaseModel):
    start: Any = None
    end: Any = None
    types: Any = None
    tags: Any = None
    filters: Any = None


@dataclass(frozen=True, slots=True)
class QueryVectors:
    """The vector to search with, None without an embedder; `plain`: the query's own vector where that differs."""

    searched: Vector | None
    plain: Vector | None = None
    used: dict[str, TechniqueMetrics] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


async def with_self_query(query: Query, res: Resources) -> tuple[Query, dict[str, TechniqueMetrics]]:
    """Returns the query with the filters that its text asks for, if it is to be read for them; a filter of the caller
    stays."""
    if not query.ranking.techniques.self_query:
        return query, {}
    began, source, narrowed = time.perf_counter(), _RULES, None
    reference, zone = query.reference or res.clock(), query.timezone or res.settings.memories.timezone
    if res.llm is not None:
        request = self_query_request(query.text, reference=reference, timezone=zone)
        try:
            reply = await complete(query, request, _Filters, res)
            narrowed, source = _by_model(query, reply), _MODEL
        except LlmError:
            source = f"{_RULES}: {_FAILED}"
    if narrowed is None:
        narrowed = await res.rules.run_if_long(len(query.text), _by_rules, query, reference, ZoneInfo(zone))
    old, new = query.narrow, narrowed.narrow
    changed = {
        "time": query.window != narrowed.window,
        "types": old.types != new.types,
        "tags": old.tags != new.tags,
        "filters": old.filters != new.filters,
    }
    added = [name for name, differs in changed.items() if differs]
    note = f"{source}: {', '.join(added)}" if added else f"{source}: nothing to filter by"
    return narrowed, {"self_query": TechniqueMetrics(elapsed_ms(began), len(added), note)}


async def widen(query: Query, res: Resources) -> tuple[Sequence[CleanText], dict[str, TechniqueMetrics]]:
    """Returns the texts of query expansion and HyDE, which are embedded as notes in addition to the query, and what
    each technique did. Both ask the language model at the same time."""
    on = query.ranking.techniques
    wanted = {"query_expansion": (on.query_expansion, _expand), "hyde": (on.hyde, _imagine)}
    running = {name: ask(query, res) for name, (switched, ask) in wanted.items() if switched}
    results = dict(zip(running, await asyncio.gather(*running.values()), strict=True))
    texts = tuple(dict.fromkeys(text for each, _ in results.values() for text in each))
    return texts, {name: used for name, (_, used) in results.items()}


async def mean_vector(
    query: Query, text: CleanText, added: Sequence[CleanText], res: Resources, *, is_request: bool
) -> QueryVectors:
    """Returns one vector for the query and what was added to it, without what all requests have in common if the query
    is one. Raises EmbeddingError."""
    began, owner = time.perf_counter(), query.scope.workspace_id
    notes = [text, *added] if is_request else added
    plain, note_vectors = await asyncio.gather(res.embedder.embed_query(owner, text), res.embedder.embed(owner, notes))
    mean = np.mean([plain, np.mean(note_vectors, axis=0)], axis=0, dtype=np.float32)
    if is_request:
        mean = mean - GENERIC_SHARE * await _generic_request(owner, res)
    length = float(np.linalg.norm(mean))
    searched = np.asarray(mean / length, dtype=np.float32) if length > 1e-6 else plain
    return QueryVectors(
        searched, plain, {"requests": TechniqueMetrics(elapsed_ms(began), 1, _RULES)} if is_request else {}
    )


async def _generic_request(owner: UUID, res: Resources) -> Vector:
    """The mean vector of requests for nothing in particular; computed once per process."""
    vector = res.generic_requests.get(res.embedder.identity)
    if vector is None:
        queries = [await res.embedder.embed_query(owner, text) for text in GENERIC_REQUESTS]
        notes = await res.embedder.embed(owner, GENERIC_REQUESTS)
        vector = res.generic_requests[res.embedder.identity] = np.mean([*queries, *notes], axis=0, dtype=np.float32)
    return vector


async def _expand(query: Query, res: Resources) -> tuple[list[CleanText], TechniqueMetrics]:
    request = expansion_request(query.text)
    return await _write_texts(query, request, _Statements, lambda reply: reply.statements, res)


async def _imagine(query: Query, res: Resources) -> tuple[list[CleanText], TechniqueMetrics]:
    return await _write_texts(query, hyde_request(query.text), _Note, lambda reply: [reply.note], res)


async def _write_texts(
    query: Query, request: LlmRequest, shape: type[Shape], read: Callable[[Shape], Sequence[object]], res: Resources
) -> tuple[list[CleanText], TechniqueMetrics]:
    """The texts that the model writes for a query; none without a model."""
    began = time.perf_counter()
    if res.llm is None:
        return [], TechniqueMetrics(0.0, 0, _NO_MODEL)
    try:
        reply = await complete(query, request, shape, res)
    except LlmError:
        return [], TechniqueMetrics(elapsed_ms(began), 0, f"skipped: {_FAILED}")
    texts = _texts(read(reply))[:MAX_STATEMENTS]
    return texts, TechniqueMetrics(
        elapsed_ms(began), len(texts), _MODEL if texts else "skipped: the answer could not be used"
    )


async def complete(query: Query, request: LlmRequest, shape: type[Shape], res: Resources) -> Shape:
    """The model's answer within TIMEOUT_S, as a search is waiting for it. Raises LlmError."""
    soon = replace(request, deadline_s=min(request.deadline_s, TIMEOUT_S))
    return await model_calls.complete_as(res, query.scope.workspace_id, soon, shape)


def _texts(values: Sequence[object]) -> list[CleanText]:
    return [CleanText(value.strip()[:MAX_CHARS]) for value in values if isinstance(value, str) and value.strip()]


def _by_model(query: Query, reply: _Filters) -> Query:
    """The query restricted by a model's answer; an invalid time, an unknown type or an invalid filter is left out."""
    start, end = parse_time(reply.start), parse_time(reply.end)
    usable = (start or end) and not (start and end and start >= end)
    types = reply.types if isinstance(reply.types, list) else []
    tags = reply.tags if isinstance(reply.tags, list) else []
    return _with_filters(
        query,
        Window(start, end) if usable else EVER,
        [kind for kind in MemoryType if kind in types],
        [tag for tag in tags if isinstance(tag, str)],
        _filter(reply.filters),
    )


def _filter(raw: object) -> Filter | None:
    if isinstance(raw, str):  # as the prompt asks; some models give the object itself
        raw = parse_reply(raw)
    if not isinstance(raw, Mapping) or not raw:
        return None
    try:
        return filters.read(raw)
    except InvalidInput:
        return None


def _by_rules(query: Query, reference: datetime, zone: ZoneInfo) -> Query:
    kind = _KIND.match(query.text)
    return _with_filters(
        query,
        Window(*(temporal.window(query.text, reference, zone) or (None, None))),
        [MemoryType(kind["kind"].capitalize())] if kind else [],
        [match["tag"] for match in _TAGGED.finditer(query.text)],
        None,
    )


def _with_filters(
    query: Query, window: Window, types: Sequence[MemoryType], tags: Sequence[str], tree: Filter | None
) -> Query:
    """The query with restrictions where the caller set none."""
    old = query.narrow
    narrow = replace(
        old,
        types=old.types or tuple(map(str, types)),
        tags=old.tags or normalise(tags),
        filters=old.filters or tree,
    )
    return replace(query, window=window if query.window.is_open else query.window, narrow=narrow)


# -- requests to the language model -----------------------------------------------------------------------------------

EXPAND = f"""You prepare a search in somebody's notes. {MATERIAL}
Write how the notes that answer the question might put it: one to three short statements, with other words for the same
things where there are any, without making up the answer.
Answer with one JSON object: {{"statements": ["..."]}}."""

HYDE = f"""You prepare a search in somebody's notes. {MATERIAL}
Write one short note, as it might stand there, that answers the question. Details may be made up: only its likeness to
real notes counts.
Answer with one JSON object: {{"note": "..."}}."""

SELF_QUERY = f"""You turn a question to somebody's notes into a search. {MATERIAL}
Answer with one JSON object; leave out what the question does not say:
- "start", "end": ISO 8601, the half-open time in which it happened.
- "types": of Decision, Pattern, Preference, Style, Habit, Insight, Context, when it asks for such notes.
- "tags": tags that it names explicitly.
- "filters": when it names a property and its value, a JSON text of
  {{{{"field": "metadata.NAME", "operator": OP, "value": V}}}}
  or of {{{{"AND": [...]}}}}, {{{{"OR": [...]}}}}, {{{{"NOT": {{{{...}}}}}}}} over such conditions.
  OP: eq, ne, gt, gte, lt, lte, in, nin, contains, icontains.
Reference time: {{reference}} ({{timezone}})."""

HYDE_TEMPERATURE = 0.7
"""An imagined note may vary; the answer is still kept for the same query."""


def expansion_request(text: CleanText) -> LlmRequest:
    return LlmRequest(
        "expand",
        EXPAND,
        fence(text),
        schema_of(statements={"type": "array", "items": {"type": "string"}}),
        0,
        300,
    )


def hyde_request(text: CleanText) -> LlmRequest:
    return LlmRequest("hyde", HYDE, fence(text), schema_of(note={"type": "string"}), HYDE_TEMPERATURE, 300)


def self_query_request(text: CleanText, *, reference: datetime, timezone: str) -> LlmRequest:
    system = SELF_QUERY.format(reference=reference.isoformat(timespec="minutes"), timezone=timezone)
    maybe, words = {"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}
    return LlmRequest(
        "self_query",
        system,
        fence(text),
        schema_of(start=maybe, end=maybe, types=words, tags=words, filters=maybe),
        0,
        300,
    )
