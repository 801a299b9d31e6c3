"""The probability of an answer, of small sets of statements."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from service.domain import bm25
from service.domain.query import Query
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.language.context import first_person, question_share
from service.search import query_parsing
from service.search.answerability import Answerability, assess, unsaid_share
from service.search.fusion import Columns, QueryContext
from service.search.statements.features import Features, TermIdf

NOW = datetime(2026, 3, 1, tzinfo=UTC)
QUESTION = "What did Ann plant in the garden?"

Said = tuple[str | None, str, float]
"""Who said it, the text, and its cosine to the question."""


def answer(*said: Said, question: str = QUESTION, unsaid: float = 0.0, texts: int = 500) -> Answerability:
    found = judged(*said, question=question, unsaid=unsaid, texts=texts)
    assert found is not None
    return found


def judged(*said: Said, question: str = QUESTION, unsaid: float = 0.0, texts: int = 500) -> Answerability | None:
    speakers = [who for who, _, _ in said]
    cosines, nothing = np.array([cosine for _, _, cosine in said]), np.zeros(len(said))
    phrasing = [text for _, text, _ in said]
    signals = {
        "context_lexical": nothing,
        "declarative": np.array([1.0 - question_share(text) for text in phrasing]),
        "first_person": np.array([first_person(text) for text in phrasing]),
    }
    ids = [UUID(int=at) for at in range(len(said))]
    parsed = query_parsing.parse(question, NOW, ZoneInfo("UTC"), {who for who in speakers if who})
    query = Query(Scope(UUID(int=1), user_id="u"), CleanText(question), 10)
    context = QueryContext(query, parsed, NOW, TermIdf(_idf(unsaid, texts), {}), {}, text_count=texts)
    measured = Features(ids, nothing, nothing, cosines, nothing, phrasing=phrasing, speaker=speakers)
    return assess(context, measured, Columns(ids, signals), cosines)


def _idf(unsaid: float, texts: int) -> dict[int, float]:
    """The IDF of one word that no text has, and of frequent ones that make up the rest."""
    if not unsaid:
        return {}
    rare = bm25.idf(texts, 0)
    return {0: rare} | dict.fromkeys(range(1, 101), rare * (1 - unsaid) / unsaid / 100)


def test_the_nearer_the_likelier() -> None:
    far, near = (answer(("Ann", "I planted leeks.", cosine)).probability for cosine in (0.45, 0.75))
    assert far < 0.3 < 0.5 < near


def test_in_a_small_store_what_is_less_near_may_be_the_answer() -> None:
    one, many, more = (
        answer((None, "She prefers tea.", 0.55), question="what does she drink", unsaid=0.9, texts=texts).probability
        for texts in (1, 200, 5_000)
    )
    assert many == more < 0.2 < 0.5 < one


def test_what_only_somebody_else_did_has_no_answer() -> None:
    small_talk = ("Ann", "I love the weather today.", 0.5)
    hers = answer(("Ann", "I planted leeks in my garden.", 0.75), ("Ben", "I like the weather, too.", 0.5))
    his = answer(small_talk, ("Ben", "I planted leeks in my garden.", 0.75))
    assert his.probability < 0.2 < 0.7 < hers.probability


def test_what_somebody_else_says_of_the_person_asked_about_counts() -> None:
    asked = ("Ann", "I had a long day at work.", 0.5)
    of_himself = answer(asked, ("Ben", "I planted my leeks where I always do.", 0.7))
    of_her = answer(asked, ("Ben", "You planted your leeks in your usual place.", 0.7))
    assert of_himself.probability < of_her.probability / 2


def test_a_question_is_no_answer() -> None:
    told, asked = (
        answer(("Ann", text, 0.6), ("Ben", "I saw it.", 0.5)) for text in ("I grew leeks.", "Did I grow leeks?")
    )
    assert told.less_fit[UUID(int=0)] == 0.0
    assert told.less_fit[UUID(int=1)] > asked.less_fit[UUID(int=1)]


@pytest.mark.parametrize("question", ["What did Ann and Ben plant?", "What was planted?", "What did Carl plant?"])
def test_without_one_speaker_who_is_named_it_does_not_count_who_said_it(question: str) -> None:
    said = [(None, "I planted leeks.", 0.7), (None, "I saw it.", 0.5)]
    by_both = [("Ann", *said[0][1:]), ("Ben", *said[1][1:])]
    swapped = [("Ben", *said[0][1:]), ("Ann", *said[1][1:])]
    found = {answer(*each, question=question).probability for each in (said, by_both, swapped)}
    assert len(found) == 1


def test_words_that_nobody_ever_said_make_it_less_likely() -> None:
    said = ("Ann", "I planted leeks.", 0.65)
    probabilities = [answer(said, unsaid=share).probability for share in (0.0, 0.4, 0.8)]
    assert probabilities == sorted(probabilities, reverse=True)


def test_what_is_asked_for_must_be_there() -> None:
    question = "Who baked the cake?"
    without, named = (
        answer((None, text, 0.65), (None, "It was warm.", 0.3), question=question).probability
        for text in ("The cake was baked at home.", "The cake was baked by Ines.")
    )
    beside = answer((None, "The cake was baked.", 0.65), (None, "Ines did it.", 0.62), question=question).probability
    assert without < named / 2
    assert without < beside < named


def test_what_stands_out_is_likelier_the_answer() -> None:
    alone, among = (
        answer((None, "I planted leeks.", 0.65), (None, "I saw it.", other)).probability for other in (0.3, 0.64)
    )
    assert among < alone


def test_the_share_of_words_that_nobody_said() -> None:
    known, unknown = bm25.idf(100, 20), bm25.idf(100, 0)
    assert unsaid_share({1: known, 2: unknown}, 100) == pytest.approx(unknown / (known + unknown))
    assert unsaid_share({1: known}, 100) == 0.0
    assert unsaid_share({}, 100) == 0.0


def test_a_hit_is_never_likelier_than_an_answer_and_falls_with_its_place() -> None:
    found = answer(("Ann", "I planted leeks.", 0.7), ("Ann", "I dug the garden.", 0.65), ("Ann", "I left.", 0.3))
    hits = [found.of_hit(UUID(int=at), at) or 0.0 for at in range(3)]
    assert found.probability > hits[0] > hits[1] > hits[2] > 0
    assert (found.of_hit(UUID(int=1), 0) or 0.0) > hits[1]


def test_where_it_cannot_be_told() -> None:
    assert judged(("Ann", "I like Rome.", 0.6), question="Book me a hotel in Rome") is None
    assert judged(("Ann", "I like Rome.", float("nan"))) is None
    half = answer(("Ann", "I like Rome.", float("nan")), ("Ann", "I planted leeks.", 0.7))
    assert half.of_hit(UUID(int=0), 0) is None
    assert half.of_hit(UUID(int=1), 0) is not None


def test_nothing_stored_answers_nothing() -> None:
    assert answer().probability == 0.0
