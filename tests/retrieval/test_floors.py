"""Does ranking find what it should, on the shipped sets and with the real embedder?

The arms are worked out here in Python over all texts of a user; question, vector and fusion are the service's. Without
entities, goals and factors, so the figures lie a little beside those of docs/retrieval.md; the floors lie below both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from bench.load_conversations import read
from service.db.memories.memories import AVERAGE_LENGTH
from service.domain.query import Query
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.language import context, temporal
from service.language.context import Turn
from service.language.lexemes import term_id, weights
from service.providers import model_files
from service.providers.caches import CachedEmbedder
from service.providers.local import Encoder, LocalEmbedder
from service.providers.protocols import Vector
from service.resources import Resources
from service.retrieval import fusion, matching, query_parsing, techniques
from service.retrieval.fusion import Asking, Signals

CORPORA = Path(__file__).parents[1] / "corpora"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = UUID(int=1)
UTC_ZONE = ZoneInfo("UTC")
NEVER = frozenset({"rare", "tag", "entity", "goal"})


@dataclass(frozen=True, slots=True)
class Text:
    """A turn or a fact with what is stored of it."""

    id: str
    text: str
    speaker: str | None
    role: str | None
    at: datetime
    dated: bool
    own: Mapping[int, float]
    near: Mapping[int, float]
    vector: Vector
    near_vector: Vector


@pytest.fixture
async def embedder() -> AsyncIterator[CachedEmbedder]:
    local = LocalEmbedder(Encoder(model_files.load(None), window=256), threads=2, max_queue=1_000)
    yield CachedEmbedder(local, entries=5_000)
    await local.close()


@pytest.mark.parametrize(
    ("name", "recall", "mrr"), [("sessions", 0.91, 0.64), ("preferences", 0.71, 0.60), ("talks", 0.85, 0.63)]
)
async def test_floor(name: str, recall: float, mrr: float, embedder: CachedEmbedder) -> None:
    conversations, questions = read(CORPORA / f"{name}.jsonl")
    stored = {each["id"]: await _stored(each, embedder) for each in conversations}
    res = cast(Resources, SimpleNamespace(embedder=embedder, common={}))
    ranks = [await _ranks(each, stored[each["conversation_id"]], res) for each in questions]
    found = [
        sum(rank <= 10 for rank in each) / len(asked["evidence"]) for each, asked in zip(ranks, questions, strict=True)
    ]
    assert sum(found) / len(found) >= recall
    assert sum(1 / each[0] for each in ranks) / len(ranks) >= mrr


async def _stored(conversation: Mapping[str, Any], embedder: CachedEmbedder) -> list[Text]:
    found = []
    for part in conversation["sessions"]:
        said = [Turn(CleanText(each["text"]), each.get("speaker")) for each in part["turns"]]
        began = datetime.fromisoformat(part["datetime"]).replace(tzinfo=UTC) if "datetime" in part else None
        for at, turn in enumerate(said):
            before = said[:at] if began else []
            near = context.embedded(turn, before[-context.PRECEDING :]) if began else turn.text
            vectors = await embedder.embed(OWNER, [turn.text, near])
            moment = began + timedelta(seconds=at) if began else NOW
            own = weights(turn.text, avgdl=AVERAGE_LENGTH)
            wide = weights(context.lexical(turn, before), avgdl=AVERAGE_LENGTH)
            dated = temporal.may_have_time(turn.text) and bool(temporal.find(turn.text, moment, UTC_ZONE))
            voice = turn.speaker, _role(turn.speaker, conversation["speakers"])
            found.append(
                Text(part["turns"][at]["id"], turn.text, *voice, moment, dated, own, wide, vectors[0], vectors[-1])
            )
    return found


async def _ranks(asked: Mapping[str, Any], texts: Sequence[Text], res: Resources) -> list[int]:
    """The ranks of the evidence, best first."""
    people = {each.speaker for each in texts if each.speaker}
    seen = query_parsing.parse(asked["text"], NOW, UTC_ZONE, people)
    query = Query(Scope(OWNER, user_id="u"), CleanText(asked["text"]), 10)
    vector = (
        await techniques.embedded(query, CleanText(seen.embedding_text), [], res, request=seen.is_request)
    ).searched
    assert vector is not None
    own = _idf(seen.terms, [each.own for each in texts])
    near = _idf(seen.terms, [each.near for each in texts])
    oldest, newest = min(each.at for each in texts), max(each.at for each in texts)
    present = seen.about_present and oldest < newest
    moments = [each.at for each in texts]
    times = matching.relative_recency(moments, oldest, newest) if present else matching.time_match(seen.time, moments)
    signals = [
        Signals(
            key=each.id,
            text_lexical=sum(own[term] * each.own.get(term, 0.0) for term in own),
            context_lexical=sum(near[term] * each.near.get(term, 0.0) for term in near),
            text_vector=float(vector @ each.vector),
            context_vector=float(vector @ each.near_vector),
            speaker=matching.speaker_match(seen, each.speaker, each.role),
            asking=context.asking(each.text),
            oneself=context.oneself(each.text),
            time=float(time),
            dated=float(each.dated),
        )
        for each, time in zip(texts, times, strict=True)
    ]
    applies = {
        "time": present or seen.time,
        "speaker": seen.speakers or seen.role,
        "oneself": seen.speakers,
        "dated": seen.asks_when,
    }
    unasked = NEVER | {name for name, asks in applies.items() if not asks}
    ranked = fusion.fuse(signals, Asking(math.fsum(own.values()), math.fsum(near.values()), seen.only_time, unasked))
    return [at for at, hit in enumerate(ranked, 1) if hit.key in asked["evidence"]]


def _role(speaker: str | None, speakers: Sequence[str]) -> str | None:
    return ("user", "assistant")[speakers.index(speaker) % 2] if speaker else None


def _idf(terms: Sequence[str], texts: Sequence[Mapping[int, float]]) -> dict[int, float]:
    found = Counter(term for each in texts for term in each)
    return {term_id(term): fusion.idf(len(texts), found[term_id(term)]) for term in terms}
