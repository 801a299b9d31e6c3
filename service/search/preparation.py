"""Prepares a search before its snapshot, holding no connection: parses, widens and embeds the query, and plans."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Final

from service.domain import sizes
from service.domain.errors import EmbeddingError
from service.domain.moments import Stopwatch
from service.domain.query import Query, TechniqueMetrics
from service.domain.scope import ScopeSummary
from service.domain.text import CleanText
from service.memories.statements import visibility
from service.observability import metrics, tracing
from service.postgres import scopes
from service.postgres.scopes import Condition
from service.runtime.resources import CachedSummary, Resources
from service.search import indexed_conditions, query_parsing, techniques
from service.search.query_parsing import ParsedQuery
from service.search.statements import candidates
from service.search.statements.search_plan import MIN_ARM_LIMIT, NOWHERE, SearchPlan
from service.search.techniques import QueryVectors

SUMMARY_KEPT_S: Final = 10.0
"""How long a scope's size and speakers are cached: until then a new speaker may be missing, or the first turn of a
scope that another process stored."""

MAX_SUMMARIES: Final = 1_000


@dataclass(frozen=True, slots=True)
class PreparedText:
    """The text of a query parsed and embedded."""

    parsed: ParsedQuery
    vectors: QueryVectors


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """A search that only needs the database now. `has_turns`: whether there are turns that may answer."""

    query: Query
    plan: SearchPlan
    scope_rows: int
    has_turns: bool
    text: PreparedText
    used: dict[str, TechniqueMetrics]
    stopwatch: Stopwatch
    now: datetime


@tracing.trace("prepare")
async def prepare(query: Query, res: Resources, used: dict[str, TechniqueMetrics]) -> PreparedSearch:
    """The query parsed, widened and embedded, holding no connection."""
    stopwatch, now = Stopwatch(), query.as_of or res.clock()
    scope = scopes.readable("m", query.scope, query.channels)
    summary = await _summary(query, scope, res)
    added, by_technique = await techniques.widen(query, res)
    text = await prepare_text(query, summary.speakers, now, stopwatch, res, added=added)
    used = {**used, **by_technique, **text.vectors.used}
    has_turns = summary.has_turns and query.may_find_turns
    plan = _plan(query, scope, text, res, now)
    return PreparedSearch(query, plan, summary.rows, has_turns, text, used, stopwatch, now)


async def prepare_text(
    query: Query,
    speakers: Sequence[str],
    now: datetime,
    stopwatch: Stopwatch,
    res: Resources,
    *,
    added: Sequence[CleanText] = (),
) -> PreparedText:
    """The query's text, read with the `speakers` of the scope in mind; `added`: texts embedded with it."""
    timezone, user_id = query.timezone or res.settings.memories.timezone, query.scope.user_id
    reference = query.reference or now
    parsed = await query_parsing.parse_off_loop(query.text, reference, timezone, speakers, user_id, res)
    stopwatch.lap("read")
    more = [CleanText(query_parsing.without_names(text, speakers, user_id)) for text in added]
    vectors = await embed(query, CleanText(parsed.embedding_text), more, res, is_request=parsed.is_request)
    stopwatch.lap("embed")
    return PreparedText(parsed, vectors)


async def embed(
    query: Query, text: CleanText, added: Sequence[CleanText], res: Resources, *, is_request: bool
) -> QueryVectors:
    """The vector of the query's text and the texts added to it; none, with a warning, if the embedder does not
    answer."""
    is_request = is_request and len(text) <= techniques.MAX_CHARS
    try:
        async with asyncio.timeout(res.context.budget.overall_remaining_s):
            if not added and not is_request:
                return QueryVectors(await res.embedder.embed_query(query.scope.workspace_id, text))
            return await techniques.mean_vector(query, text, added, res, is_request=is_request)
    except (EmbeddingError, TimeoutError):
        return QueryVectors(None, warnings=("embedding_unavailable: vectors were not searched.",))


def _plan(query: Query, scope: Condition, text: PreparedText, res: Resources, now: datetime) -> SearchPlan:
    return SearchPlan(
        scope=scope,
        vector_scope=scopes.readable("v", query.scope, query.channels),
        match=query.scope.match,
        with_shared=query.scope.include_shared,
        goal_scope=_goal_scope(query),
        conditions=visibility.conditions("m", query, now),
        generation=res.generation,
        exact_rows=sizes.EXACT_ROWS,
        filter_keys=indexed_conditions.find_keys(query.narrow),
        column_ranges=indexed_conditions.find_column_ranges(query.narrow, query.window),
        terms=sorted(text.parsed.terms.values()),
        vector=text.vectors.searched,
        original_vector=text.vectors.plain,
        asked_at=text.parsed.time.middle if text.parsed.time else None,
        tags=query.tags,
        arm_limit=max(MIN_ARM_LIMIT, query.limit * 2),
        limit=query.limit,
    )


def _goal_scope(query: Query) -> Condition:
    """The scope of goals: that of the memories, but never shared."""
    if query.scope.include_shared and not query.scope.has_owner:
        return NOWHERE
    return scopes.readable("g", query.scope.private, query.channels)


async def _summary(query: Query, scope: Condition, res: Resources) -> ScopeSummary:
    """The size and the speakers of the scope. Each part of a union is looked up and cached by itself, because the
    shared part is the same for every user."""
    turns_of = scopes.readable("t", query.scope.private, query.channels, is_talk=True).each
    parts = zip_longest(scope.each, turns_of, fillvalue=NOWHERE)  # no turn is shared
    summaries = [await _part_summary(part, of_turns, query, res) for part, of_turns in parts]
    if len(summaries) == 1:
        return summaries[0]
    speakers = tuple(sorted({name for summary in summaries for name in summary.speakers}))
    return ScopeSummary(sum(each.rows for each in summaries), speakers, any(each.has_turns for each in summaries))


async def _part_summary(part: Condition, of_turns: Condition, query: Query, res: Resources) -> ScopeSummary:
    """The size and the speakers of one part, cached for some seconds."""
    count_to = max(sizes.EXACT_ROWS, sizes.BINARY_ROWS)
    key = (part.sql, repr(part.values), count_to, res.context.wall)
    position = res.context.wanted_position
    cached = res.scope_summaries.get(key)
    fresh = (
        cached is not None
        and time.monotonic() < cached.kept_until
        and (cached.summary.has_turns or cached.read_at >= position)
    )
    metrics.count_look_up("scope", hits=int(fresh), misses=int(not fresh))
    if cached is not None and fresh:
        return cached.summary
    async with res.db.read(query.scope.workspace_id, generic_plans=True) as session:
        summary = await candidates.summary(session, part, of_turns, count_to=count_to)
    if len(res.scope_summaries) > MAX_SUMMARIES:
        res.scope_summaries.clear()
    res.scope_summaries[key] = CachedSummary(time.monotonic() + SUMMARY_KEPT_S, position, summary)
    return summary
