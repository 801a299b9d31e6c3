"""Search of turns: parses and embeds the query holding no connection, reads candidates in one snapshot, ranks them.

They are ranked like memories: by a turn's own words and meaning, those of the turns before it, the speaker and the
time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from service.conversations.statements import turns
from service.conversations.statements.turns import TurnFilter
from service.domain.conversation import TurnHit
from service.domain.moments import Stopwatch
from service.domain.query import Query
from service.domain.ranking import Factors, Ranking
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.postgres import direct
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.search import answerability, fusion, preparation, signals
from service.search.preparation import PreparedText
from service.search.statements import turn_candidates
from service.search.statements.candidates import EntityMatches
from service.search.statements.search_plan import MIN_ARM_LIMIT
from service.search.statements.turn_candidates import TurnQuery

RANKING = Ranking(factors=Factors(current_factor=1.0, past_factor=1.0, expired_factor=1.0))
"""A turn has neither a temporal tag nor an end."""


@dataclass(frozen=True, slots=True)
class RankedTurns:
    """The matching turns, best first, and the probability, 0..1, that the turns searched have an answer (None if
    unknown)."""

    hits: tuple[TurnHit, ...]
    answer_probability: float | None
    warnings: tuple[str, ...] = ()
    next_skip: int | None = None


async def search(
    scope: Scope,
    text: CleanText,
    res: Resources,
    *,
    since: datetime | None,
    channels: Sequence[str],
    conversation_id: UUID | None,
    skip: int,
    limit: int,
) -> RankedTurns:
    """Returns the best `limit` turns of a scope, or of a conversation, after the first `skip`, as many as fit a
    response. Without an embedder only words, speakers and times count, and a warning says so."""
    now = res.clock()
    wanted = TurnFilter(scope, since, conversation_id=conversation_id, channels=tuple(channels), now=now)
    query = Query(scope, text, limit, ranking=RANKING)
    async with res.db.read(scope.workspace_id) as session:
        speakers = await turn_candidates.speakers(session, wanted)
    prepared = await preparation.prepare_text(query, speakers, now, Stopwatch(), res)
    parsed = replace(prepared.parsed, asks_when=False)  # it is not known whether a turn names a time
    async with res.db.snapshot(scope.workspace_id, steady_plans=True) as session:
        return await _rank(session, wanted, query, replace(prepared, parsed=parsed), now, res, skip=skip)


async def _rank(
    session: Session, wanted: TurnFilter, query: Query, text: PreparedText, now: datetime, res: Resources, *, skip: int
) -> RankedTurns:
    time = text.parsed.time
    candidates, features, _ = await turn_candidates.read(
        session,
        wanted,
        TurnQuery(sorted(text.parsed.terms.values()), text.vectors.searched, time.middle if time else None),
        generation=res.generation,
        candidate_limit=max(MIN_ARM_LIMIT, 2 * query.limit),
        newest=query.limit,
    )
    context = fusion.query_context(query, text.parsed, now, candidates, EntityMatches())
    context = replace(context, time_span=signals.time_span(text.parsed, features))
    columns, cosines = signals.columns(features, context), signals.cosines(features)
    cosine_of = dict(zip(features.ids, cosines.tolist(), strict=True))
    answer = answerability.assess(context, features, columns, cosines)
    best = fusion.fuse(columns, context, limit=query.limit, explain=False)[skip:]
    order = [(UUID(str(ranked.key)), ranked.score) for ranked in best]
    read = partial(turns.get_many, session)
    rows, count = await direct.page_of_ids([each for each, _ in order], read)
    next_skip = skip + count if count < len(order) else None
    hits = [
        TurnHit(rows[each], score, _similarity(cosine_of[each], res), answer.of_hit(each, index) if answer else None)
        for index, (each, score) in enumerate(order)
        if each in rows
    ]
    return RankedTurns(tuple(hits), answer.probability if answer else None, text.vectors.warnings, next_skip)


def _similarity(cosine: float, res: Resources) -> float | None:
    return None if math.isnan(cosine) else res.embedder.query_similarity(cosine)
