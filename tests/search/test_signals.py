"""Signals computed in columns equal those computed candidate by candidate."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from service.domain.query import Query
from service.domain.ranking import Factors, Fusion, Ranking
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.language import context
from service.runtime.statements.stats import RankingStats
from service.search import fusion, query_parsing, signals
from service.search.fusion import QueryContext
from service.search.statements.candidates import EntityMatches
from service.search.statements.features import ALWAYS, OPTIONAL, Features, TermIdf
from tests.search import candidates
from tests.search.candidates import OneCandidate

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
QUESTIONS = (
    "Where did I sail with Zorbelina?",
    "When did Ines sell her boat?",
    "What did Ines do last May?",
    "Find me a boat",
    "What is my rent now?",
    "Which harbour had ticket ZX-4471 before June 2025?",
)
NO_IDF = TermIdf({}, {})
STRENGTHS = Factors(importance=0.3, recency=0.5, salience=0.2, current_factor=1.2, past_factor=0.7)

Row = Mapping[str, Any]


def rows(random: Random, terms: list[int], count: int = 60) -> list[Row]:
    def maybe(value: object) -> Any:
        return value if random.random() < 0.7 else None

    return [
        {
            "ids": UUID(int=random.getrandbits(128)),
            "text_lexical": random.choice([0.0, random.uniform(0, 9)]),
            "context_lexical": maybe(random.uniform(0, 9)),
            "text_vector": maybe(random.uniform(-1, 1)),
            "context_vector": maybe(random.uniform(-1, 1)),
            "goal_linked": random.random() < 0.1,
            "goal_cosine": maybe(random.uniform(0, 1)),
            "phrasing": maybe(random.choice(["Do you sail? I do, on Sundays.", "I sail.", "You sail, Ines.", "Ahoy!"])),
            "vectors": None,
            "original_cosine": None,
            "speaker": maybe("Ines"),
            "role": random.choice(["user", "assistant"]),
            "timestamp": NOW - timedelta(days=random.uniform(0, 900)),
            "mentions": maybe(
                [{"text": "then", "kind": "date", "begins_at": "2025-05-03T00:00:00+00:00", "ends_at": None}]
            ),
            "dated": random.random() < 0.5,
            "tagged": random.random() < 0.5,
            "terms": random.sample(terms, random.randint(0, len(terms))),
            "ended": maybe(NOW + timedelta(days=random.choice([-1, 1]))),
            "temporal_tag": maybe(random.choice(["current", "past", "future"])),
            "importance": random.random(),
        }
        for _ in range(count)
    ]


def features(found: list[Row], wanted: frozenset[str]) -> Features:
    names = [*ALWAYS, *(name for name in OPTIONAL if name in wanted)]
    columns: dict[str, Any] = {name: [row[name] for row in found] for name in names}
    numbers = ("text_lexical", "context_lexical", "text_vector", "context_vector")
    return Features(**columns | {name: np.array(columns[name], dtype=np.float64) for name in numbers})


def one_by_one(row: Row, query_context: QueryContext) -> OneCandidate:
    """One candidate, by the rules of docs/ranking.md."""
    parsed = query_context.parsed
    held = {term for term, number in query_context.parsed.terms.items() if number in row["terms"]}
    complete = [term for group in fusion.find_required_terms(query_context) if held.issuperset(group) for term in group]
    if query_context.time_span is not None:
        time = float(signals.relative_recency([row["timestamp"]], *query_context.time_span)[0])
    else:
        time = float(signals.time_match(parsed.time, [row["timestamp"]])[0])
    standing = query_context.stats.get(row["ids"])
    age_days = max(0.0, (query_context.now - row["timestamp"]) / timedelta(days=1))
    timeless = parsed.time is None
    tags = {"current": 1.2, "past": 0.7}
    factors = {
        "validity": 0.7 if timeless and row["ended"] is not None and row["ended"] <= NOW else 1.0,
        "temporal_tag": 1.0
        if parsed.time or parsed.about_past or parsed.is_request
        else tags.get(row["temporal_tag"] or "", 1.0),
        "importance": 1 + 0.3 * (2 * row["importance"] * (standing.relevance if standing else 1.0) - 1),
        "recency": 1 + 0.5 * (2 * math.exp2(-age_days / 30) - 1),
    }
    if standing:
        factors["salience"] = 1 + 0.2 * (2 * standing.salience - 1)
    return OneCandidate(
        row["ids"],
        row["text_lexical"],
        row["context_lexical"],
        row["text_vector"],
        row["context_vector"],
        speaker=signals.speaker_match(parsed, row["speaker"], row["role"]),
        asking=context.question_share(row["phrasing"]) if row["phrasing"] else 0.0,
        first_person=_first_person(row) if parsed.speakers else 0.0,
        time=time,
        dated=float(parsed.asks_when and row["dated"]),
        rare=max((query_context.rarity.get(term, 0.0) for term in complete), default=0.0),
        tag=float(row["tagged"]),
        entity=signals.entity_match(
            query_context.entities.memories.get(row["ids"], ()),
            query_context.entity_weights,
            len(query_context.entities.named_as),
        ),
        goal=query_context.goals.get(row["ids"], 0.0),
        factors=factors,
    )


def _first_person(row: Row) -> float:
    return context.first_person(row["phrasing"]) if row["phrasing"] else 0.5


@pytest.mark.parametrize("text", QUESTIONS)
@pytest.mark.parametrize("method", ["weighted", "rrf"])
def test_columns_rank_as_candidates_one_by_one(text: str, method: Fusion) -> None:
    random = Random(f"{text} {method}")
    parsed = query_parsing.parse(text, NOW, ZoneInfo("UTC"), ["Ines"])
    terms = parsed.terms
    found = rows(random, list(terms.values()))
    ids = [row["ids"] for row in found]
    query_context = QueryContext(
        Query(
            Scope(UUID(int=1), user_id="u"),
            CleanText(text),
            10,
            tags=("sea",),
            ranking=Ranking(fusion=method, factors=STRENGTHS, diversity=0.1),
        ),
        parsed,
        NOW,
        idf=TermIdf(dict.fromkeys(terms.values(), 2.0), dict.fromkeys(terms.values(), 1.5)),
        rarity={term: random.random() for term in terms},
        entities=EntityMatches({each: frozenset({"acme"}) for each in ids[:7]}, named_as={"acme": frozenset({"acme"})}),
        entity_weights={"acme": 0.6},
        stats={each: RankingStats(random.random(), random.random()) for each in ids[:40]},
        goals={each: random.random() for each in ids},
        text_count=60,
    )
    columns = features(found, signals.choose_features(query_context, matching_texts=1))
    query_context = replace(signals.with_features(query_context, columns, 1, float), goals=query_context.goals)
    fused = fusion.fuse(signals.columns(columns, query_context), query_context)
    wanted = fusion.fuse(candidates.columns([one_by_one(row, query_context) for row in found]), query_context)
    assert [hit.key for hit in fused] == [hit.key for hit in wanted]
    for hit, other in zip(fused, wanted, strict=True):
        assert hit.score == pytest.approx(other.score, abs=1e-9)
        assert dict(hit.factors) == pytest.approx(dict(other.factors), abs=1e-9)
        for name, term in hit.terms.items():
            assert term.value == pytest.approx(other.terms[name].value, abs=1e-9)
            assert term.raw == pytest.approx(other.terms[name].raw, abs=1e-9)


def test_what_a_question_does_not_ask_is_not_read() -> None:
    parsed = query_parsing.parse("Where is the boat?", NOW, ZoneInfo("UTC"))
    query_context = QueryContext(
        Query(Scope(UUID(int=1), user_id="u"), CleanText("?"), 10), parsed, NOW, NO_IDF, {}, text_count=1_000
    )
    always = {"ended"}
    assert signals.choose_features(query_context, matching_texts=200) == always
    assert signals.choose_features(query_context, matching_texts=2) == {"ended", "terms"}, (
        "hardly any text has a word of it"
    )
    named = replace(query_context, parsed=query_parsing.parse("When did Ines sail?", NOW, ZoneInfo("UTC"), ["Ines"]))
    assert signals.choose_features(named, matching_texts=200) == {"ended", "speaker", "short_texts", "dated"}


def test_ten_thousand_rare_words_are_not_sought_in_each_text() -> None:
    """Seconds on the event loop, until they were looked up from the words of the texts."""
    terms = {f"odd{number}": number for number in range(10_000)}
    parsed = replace(
        query_parsing.parse("Where is the boat?", NOW, ZoneInfo("UTC")),
        terms=terms,
        exact_terms=tuple((term,) for term in terms),
    )
    query_context = QueryContext(
        Query(Scope(UUID(int=1), user_id="u"), CleanText("?"), 10),
        parsed,
        NOW,
        NO_IDF,
        dict.fromkeys(terms, 0.5) | {"odd7": 1.0},
        text_count=1_000,
    )
    found = rows(Random(7), list(range(20_000, 20_060)))
    found[3]["terms"].append(7)
    found[4]["terms"].append(8)
    columns = features(found, frozenset({"terms"}))
    took_s = []
    for _ in range(3):  # the collector may run in one of them, and has all that the tests before have left to look at
        began = time.thread_time()
        rare = signals.columns(columns, query_context).signals["rare"]
        took_s.append(time.thread_time() - began)
    assert min(took_s) < 0.5
    assert {at: value for at, value in enumerate(rare) if value} == {3: 1.0, 4: 0.5}


# -- phrasing ----------------------------------------------------------------------------------------------------------

IDS = [UUID(int=number) for number in range(3)]


def test_values_of_texts_and_of_missing_texts() -> None:
    texts = ["Do you sail?", None, "I sail."]
    assert signals.asking_share(IDS, texts).tolist() == [1.0, 0.0, 0.0]
    assert signals.first_person_share(IDS, texts).tolist() == pytest.approx([1 / 3, 0.5, 2 / 3])
    assert signals.first_person_share(IDS[:1], ["I sail. " * 251]).tolist() == [0.5]
    assert signals.asking_share(IDS[:1], ["\u0643\u064a\u0641\u061f"]).tolist() == [1.0]


def test_a_text_is_measured_once_and_anew_when_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    cache = signals._Remembered(lambda text: float(measured.append(text) or len(text)))  # type: ignore[func-returns-value]
    assert [
        cache.of(IDS[0], "a"),
        cache.of(IDS[0], "a"),
        cache.of(IDS[0], "ab"),
        cache.of(IDS[1], "a"),
    ] == [1, 1, 2, 1]
    assert measured == ["a", "ab", "a"]
    monkeypatch.setattr(signals, "MAX_REMEMBERED", 3)
    cache.of(IDS[2], "a")
    cache.of(IDS[0], "a")
    assert measured == ["a", "ab", "a", "a", "a"], "all are forgotten when there are too many"
