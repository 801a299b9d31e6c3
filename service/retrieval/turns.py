"""Which turns answer a question?

The question is taken apart and embedded with nothing held, as for memories, and the same pure fusion ranks: a turn's
own words and meaning, those of the turns before it, who speaks, and when.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from service.db.engine import Session
from service.db.episodes import turns as rows
from service.db.episodes.turns import Turns
from service.db.search import turns
from service.db.search.turns import Ask, Looked, Measured
from service.domain.conversation import Turn, TurnHit
from service.domain.text import CleanText
from service.errors import EmbeddingError
from service.language import lexemes
from service.providers.budget import overall_remaining_s
from service.providers.protocols import Vector
from service.resources import Resources
from service.retrieval import fusion, matching, phrasing_signals, query_parsing
from service.retrieval.fusion import Asking, Ranked, Signals
from service.retrieval.query_parsing import ParsedQuery

ARM = 100
"""Candidates by each measure."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question ready for the database."""

    read: ParsedQuery
    terms: Mapping[str, int]
    ask: Ask
    warnings: tuple[str, ...] = ()


async def search(wanted: Turns, text: CleanText, limit: int, res: Resources) -> tuple[list[TurnHit], tuple[str, ...]]:
    """At most `limit` turns, best first, and warnings. Without an embedder only words, speakers and times count."""
    prepared = await prepare(wanted, text, res)
    async with res.db.snapshot(wanted.scope.workspace_id) as session:
        return await ranked(session, wanted, prepared, limit, res), prepared.warnings


async def prepare(wanted: Turns, text: CleanText, res: Resources) -> Prepared:
    """The question taken apart and embedded."""
    async with res.db.read(wanted.scope.workspace_id) as session:
        people = await turns.speakers(session, wanted)
    read = await query_parsing.parse_off_loop(
        text, res.clock(), res.settings.timezone, people, wanted.scope.user_id, res
    )
    vector, warnings = await _vector(wanted, CleanText(read.embedding_text), res)
    terms = {term: lexemes.term_id(term) for term in read.terms}
    return Prepared(read, terms, Ask(sorted(terms.values()), vector, read.time.middle if read.time else None), warnings)


async def ranked(session: Session, wanted: Turns, prepared: Prepared, limit: int, res: Resources) -> list[TurnHit]:
    """The best `limit` turns of the snapshot."""
    looked = await turns.look(
        session,
        wanted,
        prepared.ask,
        generation=res.generation,
        arm=max(ARM, 2 * limit),
        limit=limit,
        exact_rows=max(res.settings.exact_scope_rows, 1),
    )
    best = rank(looked, prepared, limit)
    by_id = {each.id: each for each in looked.measured}
    order = [(by_id[UUID(str(each.key))], each.score) for each in best]
    kept = await rows.get_many(session, wanted.scope.workspace_id, [each.id for each, _ in order])
    return [_hit(kept[each.id], each, score, res) for each, score in order if each.id in kept]


def _hit(turn: Turn, measured: Measured, score: float, res: Resources) -> TurnHit:
    similarity = None if measured.cosine is None else res.embedder.query_similarity(measured.cosine)
    return TurnHit(turn, score, similarity)


def rank(looked: Looked, prepared: Prepared, limit: int) -> list[Ranked]:
    """The candidates in the order in which they answer the question. Pure."""
    read = prepared.read
    rarity = {
        term: fusion.rarity(looked.texts, looked.found_in.get(number, 0.0)) for term, number in prepared.terms.items()
    }
    times = matching.time_match(read.time, [each.timestamp for each in looked.measured])
    ids, texts = [each.id for each in looked.measured], [each.text for each in looked.measured]
    asking = phrasing_signals.asking(ids, texts)
    oneself = phrasing_signals.first_person(ids, texts if read.speakers else [None] * len(ids))
    signals = [
        Signals(
            key=each.id,
            text_lexical=each.words,
            context_lexical=each.near_words,
            text_vector=each.cosine,
            context_vector=each.near_cosine,
            speaker=matching.speaker_match(read, each.speaker, each.role),
            asking=float(asking[at]),
            oneself=float(oneself[at]),
            time=float(times[at]),
            rare=matching.exact_match(read.exact_terms, turns.held(each, prepared.terms), rarity),
        )
        for at, each in enumerate(looked.measured)
    ]
    applies = {
        "speaker": bool(read.speakers) or read.role is not None,
        "oneself": bool(read.speakers),
        "time": read.time is not None,
        "rare": bool(read.exact_terms),
    }
    unasked = frozenset(name for name in applies if not applies[name]) | {"dated", "tag", "entity", "goal"}
    found = (looked.found_in.get(number, 0.0) for number in prepared.terms.values())
    reach = math.fsum(fusion.idf(looked.texts, count) for count in found)
    return fusion.fuse(signals, Asking(reach, reach, read.only_time, unasked=unasked), limit=limit)


async def _vector(wanted: Turns, text: CleanText, res: Resources) -> tuple[Vector | None, tuple[str, ...]]:
    try:
        async with asyncio.timeout(overall_remaining_s()):
            return await res.embedder.embed_query(wanted.scope.workspace_id, text), ()
    except (EmbeddingError, TimeoutError):
        return None, ("embedding_unavailable: vectors were not searched.",)
