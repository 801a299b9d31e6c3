"""The message that a model's fact comes from, and whether it corrects something."""

from __future__ import annotations

from datetime import UTC, datetime

from service.domain.fact import Fact
from service.domain.text import CleanText
from service.language.talk import Utterance
from service.understanding.grounding import ground
from service.understanding.sourcing import SourceTurns

TALK = [
    ("user", "I live in Lisbon. I have a cat."),
    ("assistant", "I remember that you like green tea. How is your cat?"),
    ("user", "Fine. No, sorry. I meant a dog! And I moved, actually I live in Porto now."),
]


def said(*lines: tuple[str, str]) -> SourceTurns:
    at = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
    return SourceTurns([Utterance(role, CleanText(text), said_at=at) for role, text in lines])


def found(text: str, sources: SourceTurns, **parts: object) -> Fact:
    [fact] = ground([Fact(CleanText(text), 0.95, **parts)], sources)[0]  # type: ignore[arg-type]
    return fact


def test_the_users_own_words_win_over_the_assistants() -> None:
    talk = said(("assistant", "So you live in Oslo."), ("user", "I live in Oslo, yes."))
    assert found("User lives in Oslo", talk).message == 1


def test_a_fact_knows_its_message_and_its_sentence() -> None:
    fact = found("User has a cat", said(*TALK))
    assert (fact.message, fact.correction, fact.by_assistant, fact.speaker) == (0, False, False, "User")
    assert TALK[0][1][fact.start : fact.end] == "I have a cat."


def test_a_wrong_number_does_not_place_a_fact() -> None:
    assert found("User has a cat", said(*TALK), message=7).message == 0
    assert found("User has a cat", said(*TALK), message=2).message == 0


def test_what_was_corrected_is_a_correction() -> None:
    assert found("User has a dog", said(*TALK)).correction


def test_what_the_model_calls_a_correction_is_one() -> None:
    assert found("User lives in Lisbon", said(*TALK), correction=True).correction


def test_an_assistants_actually_corrects_nothing() -> None:
    talk = said(("assistant", "Actually, you like green tea."), ("user", "Right."))
    fact = found("User likes green tea", talk)
    assert (fact.message, fact.correction, fact.by_assistant) == (0, False, True)
