"""Is a question taken apart into what its answer says, who said it and when?"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from service.domain.temporal import Mention
from service.retrieval import matching, query_parsing
from service.retrieval.query_parsing import ParsedQuery, QueryTime

NOW = datetime(2026, 9, 16, 12, tzinfo=UTC)
ZONE = ZoneInfo("UTC")
PEOPLE = ("Ines", "Bram de Wit", "Will", "user")


def read(text: str, people: tuple[str, ...] = PEOPLE) -> ParsedQuery:
    return query_parsing.parse(text, NOW, ZONE, people)


def fit(asked: QueryTime | None, at: datetime, *mentions: Mention) -> float:
    """How well a memory of this time, naming these times, fits."""
    return float(matching.time_match(asked, [at], [mentions])[0])


@pytest.mark.parametrize(
    ("text", "embed", "named"),
    [
        ("Where did Ines buy the kayak?", "Where did buy the kayak?", {"Ines"}),
        ("What is Ines's job?", "What is job?", {"Ines"}),
        ("what is ines’s job?", "what is job?", {"Ines"}),
        ("What did Bram cook?", "What did cook?", {"Bram de Wit"}),
        ("What did Bram de Wit cook?", "What did cook?", {"Bram de Wit"}),
        ("Did Ines call Bram about rent?", "Did call about rent?", {"Ines", "Bram de Wit"}),
        ("What did Inesita cook?", "What did Inesita cook?", set()),
        ("When will the train leave?", "When will the train leave?", set()),
        ("When did Will leave on a train?", "When did leave on a train?", {"Will"}),
        ("what is the user allergic to", "what is the user allergic to", set()),
        ("Ines", "Ines", {"Ines"}),
    ],
)
def test_names_of_speakers_leave_the_vector(text: str, embed: str, named: set[str]) -> None:
    found = read(text)
    assert found.embedding_text == embed
    assert set(found.speakers) == named


def test_names_of_speakers_leave_the_terms_unless_nothing_else_is_asked() -> None:
    assert read("Where did Ines buy the kayak?").terms == ("buy", "kayak")
    assert read("Ines").terms
    assert read("Where did Ines buy the kayak?", ()).speakers == frozenset()


@pytest.mark.parametrize(
    ("text", "user_id", "embed"),
    [
        ("Where does Alice live?", "alice", "Where does live?"),
        ("What is Alice's job?", "alice", "What is job?"),
        ("Where does Alice Moreau live?", "alice.moreau@example.com", "Where does live?"),
        ("Where does Alice live?", "alice_moreau", "Where does live?"),
        ("Who is Alice?", "alice", "Who is Alice?"),
        ("Tell me about Alice", "alice", "Tell me about Alice"),
        ("Where does Alicia live?", "alice", "Where does Alicia live?"),
        ("Where does Alice live?", "user-4711", "Where does Alice live?"),
        ("Where does Alice live?", None, "Where does Alice live?"),
        ("Support is open when?", "support", "Support is open when?"),
        ("does she like maple syrup?", "maple", "does she like maple syrup?"),
    ],
)
def test_the_name_of_the_user_whose_memories_they_are_is_no_part_of_what_is_asked(
    text: str, user_id: str | None, embed: str
) -> None:
    found = query_parsing.parse(text, NOW, ZONE, (), user_id)
    assert found.embedding_text == embed
    assert found.speakers == frozenset()
    assert query_parsing.without_names(text, (), user_id) == embed
    if embed != text:
        assert found.exact_terms == ()
        assert not {"alic", "alice"} & set(found.terms)


def test_a_speaker_of_that_name_is_one_who_is_asked_about() -> None:
    assert query_parsing.parse("Where does Ines live?", NOW, ZONE, PEOPLE, "ines").speakers == {"Ines"}


@pytest.mark.parametrize(
    ("text", "embed"),
    [
        ("What does she do for a living?", "What does she do for work?"),
        ("what did Ana do for her living", "what did Ana do for work"),
        ("How does my brother earn a living?", "How does my brother do for work?"),
        ("Where is he living?", "Where is he living?"),
        ("What is in the living room for a change?", "What is in the living room for a change?"),
    ],
)
def test_what_somebody_lives_on_is_work(text: str, embed: str) -> None:
    asked = query_parsing.parse(text, NOW, ZONE)
    assert asked.embedding_text == embed
    assert ("work" in asked.terms) == ("work" in embed)
    assert query_parsing.without_names(text, []) == embed


def test_a_term_counts_once() -> None:
    assert read("kayak, kayaks and a kayak").terms == ("kayak",)


@pytest.mark.parametrize(
    ("text", "rare"),
    [
        ("ZX-4471", True),
        ("what became of ticket 4471902", True),
        ("who mentioned Xyloquartz", True),
        ("Which dog did Zorbelina's cousin adopt", True),
        ("What about order 1777?", True),
        ("Which room is 304", True),
        ("What did we eat in 2023", False),
        ("Who won at 12", False),
        ("Where do I work", False),
        ("what happened on the 3rd", False),
        ("meeting at 3pm in May", False),
        ("What did Ines say on Monday", False),
    ],
)
def test_names_and_ids_are_rare(text: str, rare: bool) -> None:
    assert bool(read(text).exact_terms) is rare


def test_a_rare_name_is_matched_in_full() -> None:
    asked = read("status of ZX-4471")
    rarity = {term: 0.5 for group in asked.exact_terms for term in group} | {"zx-4471": 1.0}
    assert matching.exact_match(asked.exact_terms, {"zx", "4471", "zx-4471", "ticket"}, rarity) == 1.0
    assert matching.exact_match(asked.exact_terms, {"zx", "4472", "zx-4472"}, rarity) == 0.0
    assert matching.exact_match(read("where do I work").exact_terms, {"work"}, rarity) == 0.0


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("Where does the zirconium ledger lie?", {("zirconium",), ("ledger",)}),
        ("what do you know about quetzalcoatlus", {("quetzalcoatlus",)}),
        ("What did my friend say about the river?", set()),
        ("the 3rd of May", set()),
    ],
)
def test_odd_words(text: str, odd: set[tuple[str, ...]]) -> None:
    assert set(read(text).rare_terms) == odd


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("What is my locker number?", "user"),
        ("Which restaurant did I like?", "user"),
        ("What did you recommend to me?", "assistant"),
        ("Repeat your advice on paint", "assistant"),
        ("You suggested a paint, which one?", "assistant"),
        ("Which US state is the largest?", None),
        ("What did Ines tell me?", None),
        ("name of the dog", None),
    ],
)
def test_whose_words_are_asked_for(text: str, role: str | None) -> None:
    assert read(text).role == role


@pytest.mark.parametrize(
    ("text", "speaker", "role", "match"),
    [
        ("Where did Ines sail?", "Ines", "user", matching.NAMED_SPEAKER),
        ("Where did Ines sail?", "Bram de Wit", "user", 0),
        ("Where did Ines sail with Bram?", "Ines", "user", 0),
        ("Where did I sail?", None, "user", 1),
        ("Where did I sail?", None, "assistant", 0),
        ("Where is the boat?", "Ines", "user", 0),
    ],
)
def test_the_speaker_fits_or_not(text: str, speaker: str | None, role: str, match: float) -> None:
    assert matching.speaker_match(read(text), speaker, role) == match


@pytest.mark.parametrize(
    ("text", "any_year"),
    [
        ("What did Ines do in March?", True),
        ("What did Ines do in March last year?", False),
        ("What did Ines do two years ago in March?", False),
    ],
)
def test_a_year_may_be_told_from_here(text: str, any_year: bool) -> None:
    asked = read(text).time
    assert asked is not None
    assert asked.any_year is any_year


def test_a_date_with_a_year_is_that_date_alone() -> None:
    asked = read("What did Ines do on 3 May 2023?").time
    assert asked is not None
    assert (asked.begins_at, asked.any_year) == (datetime(2023, 5, 3, tzinfo=UTC), False)
    at = datetime(2023, 5, 3, 18, tzinfo=UTC)
    fits = [fit(asked, at + timedelta(days=days)) for days in (0, 3, 30, -3)]
    assert fits[0] == 1.0
    assert 1 > fits[1] > 0.5 > fits[3] > fits[2]
    assert fit(asked, at.replace(year=2024)) < 0.01


def test_a_month_without_a_year_fits_every_year_the_latest_best() -> None:
    asked = read("What did Ines do last May?").time
    assert asked is not None
    latest, older, other = (datetime(*day, tzinfo=UTC) for day in ((2026, 5, 9), (2021, 5, 9), (2021, 9, 9)))
    assert fit(asked, latest) == 1.0
    assert fit(asked, older) == matching.OTHER_YEAR
    assert fit(asked, other) < 0.01


def test_words_relative_to_now_do_not_spoil_a_date() -> None:
    asked = read("Where did we dance last Saturday before June 7, 2023?").time
    assert asked is not None
    assert asked.ends_at is not None
    assert asked.ends_at.year == 2023
    near, far = datetime(2023, 6, 3, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)
    assert fit(asked, near) > fit(asked, far) >= 0.5


@pytest.mark.parametrize(
    ("days", "fits"), [((-1, 1), True), ((0, 0), True), ((2, 4), False), ((-400, 400), False), ((None, 3), False)]
)
def test_a_time_told_in_the_memory_counts(days: tuple[int | None, int], fits: bool) -> None:
    day = datetime(2023, 5, 3, tzinfo=UTC)
    asked = QueryTime(day, day + timedelta(days=1))
    begins, ends = (None if off is None else day + timedelta(days=off) for off in days)
    mention = Mention("then", 0, 4, "date", begins, ends)
    assert (fit(asked, day + timedelta(days=200), mention) == 1.0) is fits


def test_29_february_is_asked_of_other_years_too() -> None:
    asked = QueryTime(datetime(2024, 2, 29, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC), any_year=True)
    assert fit(asked, datetime(2022, 2, 28, 12, tzinfo=UTC)) == matching.OTHER_YEAR


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("what happened on 3 May 2023", True),
        ("yesterday", True),
        ("what did we talk about yesterday?", True),
        ("what did I eat yesterday?", False),
        ("what happened?", False),
    ],
)
def test_a_question_for_nothing_but_a_time(text: str, alone: bool) -> None:
    assert read(text).only_time is alone


def test_no_time_fits_nothing() -> None:
    assert read("Where is the boat?").time is None
    assert fit(None, NOW) == 0.0


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Tell me about Zenobia", {"zenobia"}),
        ("where is the new york office of acme", {"new york", "acme"}),
        ("did zenobia's sister call?", {"zenobia"}),
    ],
)
def test_what_may_be_an_entity(text: str, names: set[str]) -> None:
    assert names <= {phrase.casefold() for phrase in read(text).phrases}


def test_common_words_are_no_entities() -> None:
    assert read("What did we do with the old table?").phrases == ()


@pytest.mark.parametrize(
    ("text", "alone"),
    [("Tell me about Zenobia", True), ("who is zenobia?", True), ("What does Zenobia collect?", False)],
)
def test_a_question_for_nothing_but_an_entity(text: str, alone: bool) -> None:
    assert query_parsing.only_names(read(text), ["zenobia"]) is alone
    assert not query_parsing.only_names(read(text), [])


def test_a_memory_that_names_more_of_the_entities_fits_better() -> None:
    worth = {"zenobia": 1.0, "acme": 0.5}
    assert matching.entity_match({"zenobia", "acme"}, worth, 2) == 0.75
    assert matching.entity_match({"acme"}, worth, 2) == 0.25
    assert matching.entity_match({"rerik"}, worth, 2) == 0.0
    assert matching.entity_match((), {}, 0) == 0.0


@pytest.mark.parametrize(
    ("text", "back"),
    [("Where does she live?", False), ("Where did she live?", True), ("What was her former job?", True)],
)
def test_a_question_that_looks_back(text: str, back: bool) -> None:
    assert read(text).about_past is back


def test_a_request_asks_for_words_of_its_author() -> None:
    found = read("Could you recommend a hotel in Porto?")
    assert (found.is_request, found.role) == (True, "user")
    assert read("Which hotel did you recommend in Porto?").role == "assistant"


def test_the_present_is_asked_for_unless_another_time_is() -> None:
    assert read("What is my rent now?").about_present
    assert not read("What is my latest rent of May 2023?").about_present
    assert not read("What is my rent?").about_present


def test_the_newest_candidate_is_worth_most() -> None:
    oldest = NOW - timedelta(days=10)
    moments = [NOW, NOW - timedelta(days=5), oldest - timedelta(days=3)]
    assert matching.relative_recency(moments, oldest, NOW).tolist() == [1.0, 0.5, 0.0]


def test_a_long_question_is_read_in_a_time_that_grows_with_its_length() -> None:
    """20,000 times the name of a speaker took 20 s when each was compared with all before it."""

    def cpu_s(times: int) -> float:
        began_s = time.thread_time()
        assert read("Ana " * times, ("Ana",)).speakers == {"Ana"}
        return time.thread_time() - began_s

    assert cpu_s(20_000) < max(cpu_s(5_000), 0.05) * 10
