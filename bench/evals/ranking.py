"""Recall@10 and MRR of the ranking on the shipped sets, with the real embedder, and the floors under both.

    python -m bench.evals.ranking

The arms are computed here in Python over all texts of a user; question, vector and fusion are the service's. Entities,
goals and factors are left out, so the figures differ a little from those of a running service.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from bench.load_conversations import read
from service.domain import bm25
from service.domain.query import Query
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.language import context, temporal
from service.language.context import ContextTurn
from service.language.lexemes import term_id, weights
from service.providers import model_files
from service.providers.caches import CachedEmbedder
from service.providers.local import Encoder, LocalEmbedder
from service.providers.protocols import Vector
from service.resources import Resources
from service.retrieval import fusion, matching, query_parsing, search
from service.retrieval.fusion import FusionContext, Signals
from service.retrieval.query_parsing import ParsedQuery

CORPORA = Path(__file__).parents[2] / "tests" / "corpora"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = UUID(int=1)
UTC_ZONE = ZoneInfo("UTC")
NEVER = frozenset({"rare", "tag", "entity", "goal"})


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A turn or a fact with what is stored of it."""

    id: str
    text: str
    speaker: str | None
    role: str | None
    at: datetime
    dated: bool
    text_terms: Mapping[int, float]
    context_terms: Mapping[int, float]
    vector: Vector
    context_vector: Vector


FLOORS: Mapping[str, tuple[float, float]] = {
    "sessions": (0.91, 0.64),
    "preferences": (0.71, 0.60),
    "talks": (0.85, 0.63),
}
"""Recall@10 and MRR that each set must reach."""


class BelowFloor(Exception):
    """The ranking finds less than it did."""


def report() -> str:
    """A line per set. Raises BelowFloor when one of them finds less than its floor."""
    figures = asyncio.run(_figures())
    lines = [f"{'set':12} recall@10  floor    MRR  floor"]
    for name, (recall, mrr) in figures.items():
        least_recall, least_mrr = FLOORS[name]
        lines.append(f"{name:12} {recall:9.3f} {least_recall:6.2f} {mrr:6.3f} {least_mrr:6.2f}")
    text = "\n".join(lines)
    if any(recall < FLOORS[name][0] or mrr < FLOORS[name][1] for name, (recall, mrr) in figures.items()):
        raise BelowFloor(text)
    return text


async def _figures() -> dict[str, tuple[float, float]]:
    local = LocalEmbedder(Encoder(model_files.load(None), window=256), threads=2, max_queue=1_000)
    try:
        embedder = CachedEmbedder(local, entries=5_000)
        return {name: await _recall_and_mrr(name, embedder) for name in FLOORS}
    finally:
        await local.close()


async def _recall_and_mrr(name: str, embedder: CachedEmbedder) -> tuple[float, float]:
    conversations, questions = read(CORPORA / f"{name}.jsonl")
    stored = {each["id"]: await _stored(each, embedder) for each in conversations}
    res = cast(Resources, SimpleNamespace(embedder=embedder, common={}))
    ranks = [await _ranks(each, stored[each["conversation_id"]], res) for each in questions]
    recalls = [
        sum(rank <= 10 for rank in each) / len(question["evidence"])
        for each, question in zip(ranks, questions, strict=True)
    ]
    return sum(recalls) / len(recalls), sum(1 / each[0] for each in ranks) / len(ranks)


async def _stored(conversation: Mapping[str, Any], embedder: CachedEmbedder) -> list[IndexedText]:
    found = []
    for part in conversation["sessions"]:
        said = [ContextTurn(CleanText(each["text"]), each.get("speaker")) for each in part["turns"]]
        began = datetime.fromisoformat(part["datetime"]).replace(tzinfo=UTC) if "datetime" in part else None
        for at, turn in enumerate(said):
            before = said[:at] if began else []
            near = context.embedded(turn, before[-context.PRECEDING :]) if began else turn.text
            vectors = await embedder.embed(OWNER, [turn.text, near])
            moment = began + timedelta(seconds=at) if began else NOW
            dated = temporal.may_have_time(turn.text) and bool(temporal.find(turn.text, moment, UTC_ZONE))
            stored_turn = IndexedText(
                id=part["turns"][at]["id"],
                text=turn.text,
                speaker=turn.speaker,
                role=_role(turn.speaker, conversation["speakers"]),
                at=moment,
                dated=dated,
                text_terms=weights(turn.text),
                context_terms=weights(context.lexical(turn, before)),
                vector=vectors[0],
                context_vector=vectors[-1],
            )
            found.append(stored_turn)
    return found


async def _ranks(asked: Mapping[str, Any], texts: Sequence[IndexedText], res: Resources) -> list[int]:
    """The ranks of the evidence, best first."""
    people = {each.speaker for each in texts if each.speaker}
    seen = query_parsing.parse(asked["text"], NOW, UTC_ZONE, people)
    query = Query(Scope(OWNER, user_id="u"), CleanText(asked["text"]), 10)
    vector = (await search.embed(query, CleanText(seen.embedding_text), [], res, is_request=seen.is_request)).searched
    assert vector is not None
    text_idf = _idf(seen.terms, [each.text_terms for each in texts])
    context_idf = _idf(seen.terms, [each.context_terms for each in texts])
    oldest, newest = min(each.at for each in texts), max(each.at for each in texts)
    present = seen.about_present and oldest < newest
    moments = [each.at for each in texts]
    times = matching.relative_recency(moments, oldest, newest) if present else matching.time_match(seen.time, moments)
    signals = [
        _signals(each, seen, vector, (text_idf, context_idf), float(time))
        for each, time in zip(texts, times, strict=True)
    ]
    applies = {
        "time": present or seen.time,
        "speaker": seen.speakers or seen.role,
        "first_person": seen.speakers,
        "dated": seen.asks_when,
    }
    unasked = NEVER | {name for name, asks in applies.items() if not asks}
    ranked = fusion.fuse(
        signals, FusionContext(math.fsum(text_idf.values()), math.fsum(context_idf.values()), seen.only_time, unasked)
    )
    return [at for at, hit in enumerate(ranked, 1) if hit.key in asked["evidence"]]


def _signals(
    each: IndexedText, seen: ParsedQuery, vector: Vector, idf: tuple[dict[int, float], dict[int, float]], time: float
) -> Signals:
    text_idf, context_idf = idf
    return Signals(
        key=each.id,
        text_lexical=sum(text_idf[term] * each.text_terms.get(term, 0.0) for term in text_idf),
        context_lexical=sum(context_idf[term] * each.context_terms.get(term, 0.0) for term in context_idf),
        text_vector=float(vector @ each.vector),
        context_vector=float(vector @ each.context_vector),
        speaker=matching.speaker_match(seen, each.speaker, each.role),
        asking=context.question_share(each.text),
        first_person=context.first_person(each.text),
        time=time,
        dated=float(each.dated),
    )


def _role(speaker: str | None, speakers: Sequence[str]) -> str | None:
    return ("user", "assistant")[speakers.index(speaker) % 2] if speaker else None


def _idf(terms: Sequence[str], texts: Sequence[Mapping[int, float]]) -> dict[int, float]:
    found = Counter(term for each in texts for term in each)
    return {term_id(term): bm25.idf(len(texts), found[term_id(term)]) for term in terms}


if __name__ == "__main__":
    print(report())
