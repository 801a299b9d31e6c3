"""Search of turns: parses and embeds the query with nothing held, reads candidates in one snapshot, ranks them.

Ranked as memories are: by a turn's own words and meaning, those of the turns before it, who speaks, and when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from service.domain.conversation import TurnHit
from service.domain.errors import EmbeddingError
from service.domain.query import Query
from service.domain.ranking import Factors, Ranking
from service.domain.text import CleanText
from service.episodes.statements import turns
from service.episodes.statements.turns import TurnFilter
from service.language import lexemes
from service.postgres import direct
from service.postgres.engine import Session
from service.providers.budget import overall_remaining_s
from service.providers.protocols import Vector
from service.runtime.resources import Resources
from service.search import answerability, query_parsing, signals
from service.search.query_parsing import ParsedQuery
from service.search.statements import turn_candidates
from service.search.statements.entity_arm import EntityMatches
from service.search.statements.turn_candidates import TurnQuery

MIN_CANDIDATES = 50
"""Candidates by each measure, at least."""

RANKING = Ranking(factors=Factors(temporal_tag=False, validity=False))
"""A turn has neither a temporal tag nor an end."""


@dataclass(frozen=True, slots=True)
class PreparedTurnQuery:
    """A query that needs nothing but the database any more. `term_ids`: by lexeme."""

    text: CleanText
    parsed: ParsedQuery
    term_ids: Mapping[str, int]
    query: TurnQuery
    now: datetime
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedTurns:
    """The turns that answer, best first, and the probability, 0..1, that the turns searched hold an answer (None where
    it cannot be told)."""

    hits: tuple[TurnHit, ...]
    answer_probability: float | None
    warnings: tuple[str, ...] = ()
    read_on: int | None = None


async def search(wanted: TurnFilter, text: CleanText, limit: int, res: Resources, *, skip: int = 0) -> RankedTurns:
    """Returns the best `limit` turns behind the first `skip`, as many as fit an answer. Without an embedder only words,
    speakers and times count, and a warning says so."""
    prepared = await prepare(wanted, text, res)
    async with res.db.snapshot(wanted.scope.workspace_id, steady_plans=True) as session:
        return await ranked(session, wanted, prepared, limit, res, skip=skip)


async def prepare(wanted: TurnFilter, text: CleanText, res: Resources) -> PreparedTurnQuery:
    """Returns the query parsed and embedded."""
    async with res.db.read(wanted.scope.workspace_id) as session:
        speakers = await turn_candidates.speakers(session, wanted)
    timezone, user_id, now = res.settings.timezone, wanted.scope.user_id, res.clock()
    parsed = await query_parsing.parse_off_loop(text, now, timezone, speakers, user_id, res)
    parsed = replace(parsed, asks_when=False)  # of a turn nobody knows whether it names a time
    vector, warnings = await _vector(wanted, CleanText(parsed.embedding_text), res)
    terms = {term: lexemes.term_id(term) for term in parsed.terms}
    query = TurnQuery(sorted(terms.values()), vector, parsed.time.middle if parsed.time else None)
    return PreparedTurnQuery(text, parsed, terms, query, now, warnings)


async def ranked(
    session: Session, wanted: TurnFilter, prepared: PreparedTurnQuery, limit: int, res: Resources, *, skip: int = 0
) -> RankedTurns:
    """Returns the best `limit` turns of the snapshot behind the first `skip`, as many as fit an answer."""
    found, features, _ = await turn_candidates.read(
        session,
        wanted,
        prepared.query,
        generation=res.generation,
        candidate_limit=max(MIN_CANDIDATES, 2 * limit),
        newest=limit,
        exact_rows=max(res.settings.exact_scope_rows, 1),
    )
    asked = Query(wanted.scope, prepared.text, limit, ranking=RANKING)
    context = signals.query_context(asked, prepared.parsed, prepared.now, prepared.term_ids, found, EntityMatches())
    context = replace(context, time_span=signals.time_span(prepared.parsed, features))
    columns, cosines = signals.columns(features, context), signals.cosines(features)
    answer = answerability.of_memories(context, features, columns, cosines)
    order = [(UUID(str(each.key)), each.score) for each in signals.fused(columns, context, limit=limit, explain=False)]
    order = order[skip:]
    read = partial(turns.get_many, session, wanted.scope.workspace_id)
    rows, count = await direct.page_of_ids([each for each, _ in order], read)
    read_on = skip + count if count < len(order) else None
    hits = [
        TurnHit(rows[each], score, _similarity(cosines[each], res), answer.of_hit(each, place) if answer else None)
        for place, (each, score) in enumerate(order)
        if each in rows
    ]
    return RankedTurns(tuple(hits), answer.probability if answer else None, prepared.warnings, read_on)


def _similarity(cosine: float | None, res: Resources) -> float | None:
    return None if cosine is None else res.embedder.query_similarity(cosine)


async def _vector(wanted: TurnFilter, text: CleanText, res: Resources) -> tuple[Vector | None, tuple[str, ...]]:
    try:
        async with asyncio.timeout(overall_remaining_s()):
            return await res.embedder.embed_query(wanted.scope.workspace_id, text), ()
    except (EmbeddingError, TimeoutError):
        return None, ("embedding_unavailable: vectors were not searched.",)
