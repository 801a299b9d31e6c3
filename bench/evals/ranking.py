"""Recall@10 and MRR of the ranking on the shipped sets, with the real embedder, and the floors under both.

    python -m bench.evals.ranking

Words and vectors are compared here in Python with all texts of a user; question, signals and fusion are the service's.
Entities, goals and factors are left out, so the figures differ a little from those of a running service.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from bench.load_conversations import read
from service.domain.access import NO_WALL
from service.domain.query import Query
from service.domain.ranking import Factors, Ranking
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.language import context, temporal
from service.language.context import ContextTurn
from service.language.lexemes import weights
from service.providers import model_files
from service.providers.local import Encoder, LocalEmbedder
from service.providers.protocols import Vector
from service.runtime.embedding import CachedEmbedder
from service.runtime.resources import Context, Resources
from service.search import fusion, preparation, query_parsing, signals
from service.search.fusion import QueryContext
from service.search.statements.candidates import EntityMatches
from service.search.statements.features import Features, TermIdf, of_columns
from service.search.statements.search_plan import Candidates

CORPORA = Path(__file__).parents[2] / "tests" / "corpora"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = UUID(int=1)
UTC_ZONE = ZoneInfo("UTC")
RANKING = Ranking(factors=Factors(current_factor=1.0, past_factor=1.0, expired_factor=1.0))


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
    async with local_embedder() as embedder:
        return {name: await _recall_and_mrr(name, embedder) for name in FLOORS}


@asynccontextmanager
async def local_embedder() -> AsyncIterator[CachedEmbedder]:
    """Yields the built-in embedder."""
    local = LocalEmbedder(Encoder(model_files.load(None)), threads=2, max_queue=1_000)
    try:
        yield CachedEmbedder(local, entries=5_000)
    finally:
        await local.close()


async def _recall_and_mrr(name: str, embedder: CachedEmbedder) -> tuple[float, float]:
    conversations, questions = read(CORPORA / f"{name}.jsonl")
    stored = {each["id"]: await indexed(each, embedder) for each in conversations}
    ranks = [await _ranks(each, stored[each["conversation_id"]], embedder) for each in questions]
    recalls = [
        sum(rank <= 10 for rank in each) / len(question["evidence"])
        for each, question in zip(ranks, questions, strict=True)
    ]
    return sum(recalls) / len(recalls), sum(1 / each[0] for each in ranks) / len(ranks)


async def indexed(conversation: Mapping[str, Any], embedder: CachedEmbedder) -> list[IndexedText]:
    """Returns the turns of a conversation, or its facts, as they are stored."""
    found = []
    for part in conversation["sessions"]:
        said = [ContextTurn(CleanText(each["text"]), each.get("speaker")) for each in part["turns"]]
        began = datetime.fromisoformat(part["datetime"]).replace(tzinfo=UTC) if "datetime" in part else None
        for at, turn in enumerate(said):
            before = said[:at] if began else []
            near = context.embedded_text(turn, before[-context.PRECEDING :]) if began else turn.text
            vectors = await embedder.embed(OWNER, [turn.text, near])
            moment = began + timedelta(seconds=at) if began else NOW
            dated = bool(temporal.find(turn.text, moment, UTC_ZONE))
            stored_turn = IndexedText(
                id=part["turns"][at]["id"],
                text=turn.text,
                speaker=turn.speaker,
                role=_role(turn.speaker, conversation["speakers"]),
                at=moment,
                dated=dated,
                text_terms=weights(turn.text),
                context_terms=weights(context.lexical_text(turn, before)),
                vector=vectors[0],
                context_vector=vectors[-1],
            )
            found.append(stored_turn)
    return found


async def _ranks(asked: Mapping[str, Any], texts: Sequence[IndexedText], embedder: CachedEmbedder) -> list[int]:
    """The ranks of the evidence, best first."""
    features, known = await measured(asked["text"], texts, embedder)
    ranked = fusion.fuse(signals.columns(features, known), known)
    return [at for at, hit in enumerate(ranked, 1) if hit.key in asked["evidence"]]


async def measured(
    question: str, texts: Sequence[IndexedText], embedder: CachedEmbedder
) -> tuple[Features, QueryContext]:
    """Returns the features of the texts, and what ranking knows of the question."""
    res = cast(Resources, SimpleNamespace(embedder=embedder, generic_requests={}, context=Context(NO_WALL)))
    people = {each.speaker for each in texts if each.speaker}
    seen = query_parsing.parse(question, NOW, UTC_ZONE, people)
    query = Query(Scope(OWNER, user_id="u"), CleanText(question), 10, ranking=RANKING)
    vector = (
        await preparation.embed(query, CleanText(seen.embedding_text), [], res, is_request=seen.is_request)
    ).searched
    assert vector is not None
    counted = (_counts(each.text_terms for each in texts), _counts(each.context_terms for each in texts))
    known = fusion.query_context(query, seen, NOW, Candidates(len(texts), *counted), EntityMatches())
    features = _features(texts, vector, known.idf)
    return features, replace(known, time_span=signals.time_span(seen, features))


def _features(texts: Sequence[IndexedText], vector: Vector, idf: TermIdf) -> Features:
    return of_columns(
        {
            "ids": [each.id for each in texts],
            "text_lexical": [_bm25(each.text_terms, idf.of_texts) for each in texts],
            "context_lexical": [_bm25(each.context_terms, idf.of_contexts) for each in texts],
            "text_vector": [float(vector @ each.vector) for each in texts],
            "context_vector": [float(vector @ each.context_vector) for each in texts],
            "phrasing": [each.text for each in texts],
            "speaker": [each.speaker for each in texts],
            "role": [each.role for each in texts],
            "timestamp": [each.at for each in texts],
            "dated": [each.dated for each in texts],
            "terms": [list(each.text_terms) for each in texts],
        }
    )


def _role(speaker: str | None, speakers: Sequence[str]) -> str | None:
    return ("user", "assistant")[speakers.index(speaker) % 2] if speaker else None


def _bm25(terms: Mapping[int, float], idf: Mapping[int, float]) -> float:
    return sum(weight * terms.get(term, 0.0) for term, weight in idf.items())


def _counts(texts: Iterable[Mapping[int, float]]) -> dict[int, float]:
    return {term: float(count) for term, count in Counter(term for each in texts for term in each).items()}


if __name__ == "__main__":
    print(report())
