"""Search of turns: parses and embeds the query with nothing held, reads candidates in one snapshot, ranks them.

The same fusion as for memories: a turn's own words and meaning, those of the turns before it, who speaks, and when.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from service.db.engine import Session
from service.db.episodes import turns
from service.db.episodes.turns import TurnFilter
from service.db.search import turn_candidates
from service.db.search.turn_candidates import TurnCandidates, TurnQuery
from service.domain import bm25
from service.domain.conversation import TurnHit
from service.domain.text import CleanText
from service.errors import EmbeddingError
from service.language import lexemes
from service.providers.budget import overall_remaining_s
from service.providers.protocols import Vector
from service.resources import Resources
from service.retrieval import answerability, fusion, matching, query_parsing, signals
from service.retrieval.answerability import Answerability, Statements
from service.retrieval.fusion import FusionContext, Ranked, Signals
from service.retrieval.query_parsing import ParsedQuery

MIN_CANDIDATES = 50
"""Candidates by each measure, at least."""


@dataclass(frozen=True, slots=True)
class PreparedTurnQuery:
    """A query that needs nothing but the database any more. `terms`: term ids by lexeme."""

    parsed: ParsedQuery
    term_ids: Mapping[str, int]
    query: TurnQuery
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedTurns:
    """The turns that answer, best first, and the probability, 0..1, that the turns searched hold an answer (None where
    it cannot be told)."""

    hits: tuple[TurnHit, ...]
    answer_probability: float | None
    warnings: tuple[str, ...] = ()


async def search(wanted: TurnFilter, text: CleanText, limit: int, res: Resources) -> RankedTurns:
    """Returns at most `limit` turns, best first. Without an embedder only words, speakers and times count, and a
    warning says so."""
    prepared = await prepare(wanted, text, res)
    async with res.db.snapshot(wanted.scope.workspace_id) as session:
        return await ranked(session, wanted, prepared, limit, res)


async def prepare(wanted: TurnFilter, text: CleanText, res: Resources) -> PreparedTurnQuery:
    """Returns the query parsed and embedded."""
    async with res.db.read(wanted.scope.workspace_id) as session:
        speakers = await turn_candidates.speakers(session, wanted)
    timezone, user_id = res.settings.timezone, wanted.scope.user_id
    parsed = await query_parsing.parse_off_loop(text, res.clock(), timezone, speakers, user_id, res)
    vector, warnings = await _vector(wanted, CleanText(parsed.embedding_text), res)
    terms = {term: lexemes.term_id(term) for term in parsed.terms}
    query = TurnQuery(sorted(terms.values()), vector, parsed.time.middle if parsed.time else None)
    return PreparedTurnQuery(parsed, terms, query, warnings)


async def ranked(
    session: Session, wanted: TurnFilter, prepared: PreparedTurnQuery, limit: int, res: Resources
) -> RankedTurns:
    """Returns the best `limit` turns of the snapshot."""
    found = await turn_candidates.read(
        session,
        wanted,
        prepared.query,
        generation=res.generation,
        candidate_limit=max(MIN_CANDIDATES, 2 * limit),
        newest=limit,
        exact_rows=max(res.settings.exact_scope_rows, 1),
    )
    measured, full_match = measure(found, prepared)
    order = [(UUID(str(each.key)), each.score) for each in rank(measured, full_match, prepared, limit)]
    answer = _answer(found, measured, full_match, prepared)
    rows = await turns.get_many(session, wanted.scope.workspace_id, [each for each, _ in order])
    cosines = {each.id: each.text_cosine for each in found.candidates}
    hits = [
        TurnHit(rows[each], score, _similarity(cosines[each], res), answer.of_hit(each, place) if answer else None)
        for place, (each, score) in enumerate(order)
        if each in rows
    ]
    return RankedTurns(tuple(hits), answer.probability if answer else None, prepared.warnings)


def _similarity(cosine: float | None, res: Resources) -> float | None:
    return None if cosine is None else res.embedder.query_similarity(cosine)


def _answer(
    found: TurnCandidates, measured: Sequence[Signals], full_match: float, prepared: PreparedTurnQuery
) -> Answerability | None:
    """How likely the candidates hold an answer; None where it cannot be told."""
    statements = Statements(
        [each.id for each in found.candidates],
        np.array([each.text_cosine for each in found.candidates], dtype=np.float64),
        np.array([each.context_lexical for each in found.candidates]) / (full_match or 1.0),
        np.array([each.asking for each in measured]),
        np.array([each.first_person for each in measured]),
        [each.speaker for each in found.candidates],
    )
    idf = _idf(found, prepared)
    unsaid = answerability.unsaid_share(idf, found.total)
    return answerability.assess(statements, prepared.parsed, unsaid, found.total)


def measure(found: TurnCandidates, prepared: PreparedTurnQuery) -> tuple[list[Signals], float]:
    """Returns the signals of each candidate, and the BM25 score of a text with every term of the query."""
    parsed, frequencies, total = prepared.parsed, found.document_frequencies, found.total
    rarity = {term: fusion.rarity(total, frequencies.get(number, 0.0)) for term, number in prepared.term_ids.items()}
    ids, texts = [each.id for each in found.candidates], [each.text for each in found.candidates]
    times = matching.time_match(parsed.time, [each.timestamp for each in found.candidates])
    asking = signals.asking_share(ids, texts)
    first_person = signals.first_person_share(ids, texts if parsed.speakers else [None] * len(ids))
    rare = matching.exact_match(
        parsed.exact_terms, prepared.term_ids, rarity, [each.terms for each in found.candidates]
    )
    measured = [
        Signals(
            key=each.id,
            text_lexical=each.text_lexical,
            context_lexical=each.context_lexical,
            text_vector=each.text_cosine,
            context_vector=each.context_cosine,
            speaker=matching.speaker_match(parsed, each.speaker, each.role),
            asking=float(asking[at]),
            first_person=float(first_person[at]),
            time=float(times[at]),
            rare=float(rare[at]),
        )
        for at, each in enumerate(found.candidates)
    ]
    return measured, math.fsum(_idf(found, prepared).values())


def rank(measured: Sequence[Signals], full_match: float, prepared: PreparedTurnQuery, limit: int) -> list[Ranked]:
    """Returns the best `limit` candidates, best first."""
    parsed = prepared.parsed
    return fusion.fuse(
        measured, FusionContext(full_match, full_match, parsed.only_time, unused=_unasked(parsed)), limit=limit
    )


def _idf(found: TurnCandidates, prepared: PreparedTurnQuery) -> dict[int, float]:
    """The IDF of each term of the query, by its id."""
    frequencies = found.document_frequencies
    return {number: bm25.idf(found.total, frequencies.get(number, 0.0)) for number in prepared.term_ids.values()}


def _unasked(parsed: ParsedQuery) -> frozenset[str]:
    """The signals that take no part in this query."""
    applies = {
        "speaker": bool(parsed.speakers) or parsed.role is not None,
        "first_person": bool(parsed.speakers),
        "time": parsed.time is not None,
        "rare": bool(parsed.exact_terms),
    }
    return frozenset(name for name in applies if not applies[name]) | {"dated", "tag", "entity", "goal"}


async def _vector(wanted: TurnFilter, text: CleanText, res: Resources) -> tuple[Vector | None, tuple[str, ...]]:
    try:
        async with asyncio.timeout(overall_remaining_s()):
            return await res.embedder.embed_query(wanted.scope.workspace_id, text), ()
    except (EmbeddingError, TimeoutError):
        return None, ("embedding_unavailable: vectors were not searched.",)
