"""Matching: speakers, times, exact terms and entities of candidates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from service.domain.temporal import TimeMention
from service.search import query_parsing, signals
from service.search.query_parsing import ParsedQuery, QueryTime

NOW = datetime(2026, 9, 16, 12, tzinfo=UTC)
SPEAKERS = ("Ines", "Bram de Wit", "Will", "user")


def parse(text: str) -> ParsedQuery:
    return query_parsing.parse(text, NOW, ZoneInfo("UTC"), SPEAKERS)


def time_match(query_time: QueryTime | None, at: datetime, *mentions: TimeMention) -> float:
    """The match of a memory of this time that mentions these times."""
    return float(signals.time_match(query_time, [at], [mentions])[0])


def test_a_rare_name_is_matched_in_full() -> None:
    query = parse("status of ZX-4471")
    rarity = {term: 0.5 for group in query.exact_terms for term in group} | {"zx-4471": 1.0}
    numbers = {term: at for at, term in enumerate(("zx", "4471", "zx-4471", "ticket", "4472", "zx-4472", "work"))}
    texts = [[numbers[term] for term in words.split()] for words in ("zx 4471 zx-4471 ticket", "zx 4472 zx-4472", "")]
    assert signals.exact_match(query.exact_terms, numbers, rarity, texts).tolist() == [1.0, 0.0, 0.0]
    assert signals.exact_match(parse("where do I work").exact_terms, numbers, rarity, texts).tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("text", "speaker", "role", "match"),
    [
        ("Where did Ines sail?", "Ines", "user", signals.NAMED_SPEAKER),
        ("Where did Ines sail?", "Bram de Wit", "user", 0),
        ("Where did Ines sail with Bram?", "Ines", "user", 0),
        ("Where did I sail?", None, "user", 1),
        ("Where did I sail?", None, "assistant", 0),
        ("Where is the boat?", "Ines", "user", 0),
    ],
)
def test_speaker_match(text: str, speaker: str | None, role: str, match: float) -> None:
    assert signals.speaker_match(parse(text), speaker, role) == match


def test_a_date_with_a_year_matches_only_that_date() -> None:
    query_time = parse("What did Ines do on 3 May 2023?").time
    assert query_time is not None
    assert (query_time.begins_at, query_time.any_year) == (datetime(2023, 5, 3, tzinfo=UTC), False)
    at = datetime(2023, 5, 3, 18, tzinfo=UTC)
    scores = [time_match(query_time, at + timedelta(days=days)) for days in (0, 3, 30, -3)]
    assert scores[0] == 1.0
    assert 1 > scores[1] > 0.5 > scores[3] > scores[2]
    assert time_match(query_time, at.replace(year=2024)) < 0.01


def test_a_month_without_a_year_matches_every_year_the_latest_best() -> None:
    query_time = parse("What did Ines do last May?").time
    assert query_time is not None
    latest, older, other = (datetime(*day, tzinfo=UTC) for day in ((2026, 5, 9), (2021, 5, 9), (2021, 9, 9)))
    assert time_match(query_time, latest) == 1.0
    assert time_match(query_time, older) == signals.OTHER_YEAR
    assert time_match(query_time, other) < 0.01


def test_words_relative_to_now_do_not_spoil_a_date() -> None:
    query_time = parse("Where did we dance last Saturday before June 7, 2023?").time
    assert query_time is not None
    assert query_time.ends_at is not None
    assert query_time.ends_at.year == 2023
    close, far = datetime(2023, 6, 3, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)
    assert time_match(query_time, close) > time_match(query_time, far) >= 0.5


@pytest.mark.parametrize(
    ("days", "fits"), [((-1, 1), True), ((0, 0), True), ((2, 4), False), ((-400, 400), False), ((None, 3), False)]
)
def test_a_time_mentioned_in_the_memory_counts(days: tuple[int | None, int], fits: bool) -> None:
    day = datetime(2023, 5, 3, tzinfo=UTC)
    query_time = QueryTime(day, day + timedelta(days=1))
    begins, ends = (None if off is None else day + timedelta(days=off) for off in days)
    mention = TimeMention("then", 0, 4, "date", begins, ends)
    assert (time_match(query_time, day + timedelta(days=200), mention) == 1.0) is fits


def test_29_february_matches_other_years_too() -> None:
    query_time = QueryTime(datetime(2024, 2, 29, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC), any_year=True)
    assert time_match(query_time, datetime(2022, 2, 28, 12, tzinfo=UTC)) == signals.OTHER_YEAR


def test_without_a_time_nothing_matches() -> None:
    assert parse("Where is the boat?").time is None
    assert time_match(None, NOW) == 0.0


def test_a_memory_that_names_more_of_the_entities_matches_better() -> None:
    weights = {"zenobia": 1.0, "acme": 0.5}
    assert signals.entity_match({"zenobia", "acme"}, weights, 2) == 0.75
    assert signals.entity_match({"acme"}, weights, 2) == 0.25
    assert signals.entity_match({"rerik"}, weights, 2) == 0.0
    assert signals.entity_match((), {}, 0) == 0.0


def test_relative_recency() -> None:
    oldest = NOW - timedelta(days=10)
    moments = [NOW, NOW - timedelta(days=5), oldest - timedelta(days=3)]
    assert signals.relative_recency(moments, oldest, NOW).tolist() == [1.0, 0.5, 0.0]
