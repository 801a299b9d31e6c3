"""Query parsing: speakers, exact and rare terms, times, and what is parsed for."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from service.language import lexemes
from service.search import query_parsing
from service.search.query_parsing import ParsedQuery

NOW = datetime(2026, 9, 16, 12, tzinfo=UTC)
ZONE = ZoneInfo("UTC")
SPEAKERS = ("Ines", "Bram de Wit", "Will", "user")


def parse(text: str, speakers: tuple[str, ...] = SPEAKERS) -> ParsedQuery:
    return query_parsing.parse(text, NOW, ZONE, speakers)


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
    found = parse(text)
    assert found.embedding_text == embed
    assert set(found.speakers) == named


def test_names_of_speakers_leave_the_terms_unless_nothing_else_is_left() -> None:
    assert tuple(parse("Where did Ines buy the kayak?").terms) == ("buy", "kayak")
    assert parse("Ines").terms
    assert parse("Where did Ines buy the kayak?", ()).speakers == frozenset()


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
def test_the_name_of_the_user_leaves_the_embedded_text(text: str, user_id: str | None, embed: str) -> None:
    found = query_parsing.parse(text, NOW, ZONE, (), user_id)
    assert found.embedding_text == embed
    assert found.speakers == frozenset()
    assert query_parsing.without_names(text, (), user_id) == embed
    if embed != text:
        assert found.exact_terms == ()
        assert not {"alic", "alice"} & set(found.terms)


def test_a_speaker_of_that_name_stays_a_condition() -> None:
    assert query_parsing.parse("Where does Ines live?", NOW, ZONE, SPEAKERS, "ines").speakers == {"Ines"}


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
def test_for_a_living_means_for_work(text: str, embed: str) -> None:
    parsed = query_parsing.parse(text, NOW, ZONE)
    assert parsed.embedding_text == embed
    assert ("work" in parsed.terms) == ("work" in embed)
    assert query_parsing.without_names(text, []) == embed


@pytest.mark.parametrize(
    ("text", "exact"),
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
def test_names_and_ids_are_exact_terms(text: str, exact: bool) -> None:
    assert bool(parse(text).exact_terms) is exact


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Where does the zirconium ledger lie?", {("zirconium",), ("ledger",)}),
        ("what do you know about quetzalcoatlus", {("quetzalcoatlus",)}),
        ("What did my friend say about the river?", set()),
        ("the 3rd of May", set()),
    ],
)
def test_rare_terms(text: str, terms: set[tuple[str, ...]]) -> None:
    assert set(parse(text).rare_terms) == terms


@pytest.mark.parametrize(
    ("text", "any_year"),
    [
        ("What did Ines do in March?", True),
        ("What did Ines do in March last year?", False),
        ("What did Ines do two years ago in March?", False),
    ],
)
def test_a_relative_year_is_a_year(text: str, any_year: bool) -> None:
    parsed = parse(text).time
    assert parsed is not None
    assert parsed.any_year is any_year


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Tell me about Zenobia", {"zenobia"}),
        ("where is the new york office of acme", {"new york", "acme"}),
        ("did zenobia's sister call?", {"zenobia"}),
    ],
)
def test_phrases_that_may_name_an_entity(text: str, names: set[str]) -> None:
    assert names <= {phrase.casefold() for phrase in parse(text).phrases}


@pytest.mark.parametrize(
    ("text", "only"),
    [("Tell me about Zenobia", True), ("who is zenobia?", True), ("What does Zenobia collect?", False)],
)
def test_only_names(text: str, only: bool) -> None:
    assert query_parsing.only_names(parse(text), ["zenobia"]) is only
    assert not query_parsing.only_names(parse(text), [])


READ: list[tuple[str, dict[str, object]]] = [
    ("What is my locker number?", {"role": "user"}),
    ("Which restaurant did I like?", {"role": "user"}),
    ("What did you recommend to me?", {"role": "assistant"}),
    ("Repeat your advice on paint", {"role": "assistant"}),
    ("You suggested a paint, which one?", {"role": "assistant"}),
    ("Which US state is the largest?", {"role": None}),
    ("What did Ines tell me?", {"role": None}),
    ("name of the dog", {"role": None}),
    ("Could you recommend a hotel in Porto?", {"role": "user", "is_request": True}),
    ("Which hotel did you recommend in Porto?", {"role": "assistant"}),
    ("what happened on 3 May 2023", {"only_time": True}),
    ("yesterday", {"only_time": True}),
    ("what did we talk about yesterday?", {"only_time": True}),
    ("what did I eat yesterday?", {"only_time": False}),
    ("what happened?", {"only_time": False}),
    ("Where does she live?", {"about_past": False}),
    ("Where did she live?", {"about_past": True}),
    ("What was her former job?", {"about_past": True}),
    ("What is my rent now?", {"about_present": True}),
    ("What is my latest rent of May 2023?", {"about_present": False}),
    ("What is my rent?", {"about_present": False}),
    ("kayak, kayaks and a kayak", {"terms": {"kayak": lexemes.term_id("kayak")}}),
    ("What did we do with the old table?", {"phrases": ()}),
]


@pytest.mark.parametrize(("text", "fields"), READ)
def test_what_is_read_of_a_question(text: str, fields: dict[str, object]) -> None:
    found = parse(text)
    assert {name: getattr(found, name) for name in fields} == fields


def test_parsing_takes_linear_time() -> None:
    """20,000 times the name of a speaker took 20 s when each was compared with all before it."""

    def once(times: int) -> float:
        began_s = time.thread_time()
        assert parse("Ana " * times, ("Ana",)).speakers == {"Ana"}
        return time.thread_time() - began_s

    def cpu_s(times: int) -> float:
        return min(once(times) for _ in range(3))  # a processor that is shared counts waiting too

    assert cpu_s(20_000) < max(cpu_s(5_000), 0.05) * 10
