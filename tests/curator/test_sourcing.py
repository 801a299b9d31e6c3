"""The message that a model's fact comes from, and whether it corrects something."""

from __future__ import annotations

from service.curator.sourcing import SourceMessage, placed
from service.domain.fact import Fact
from service.domain.text import CleanText

TALK = [
    ("user", "I live in Lisbon. I have a cat."),
    ("assistant", "I remember that you like green tea. How is your cat?"),
    ("user", "Fine. No, sorry. I meant a dog! And I moved, actually I live in Porto now."),
]


def said(*lines: tuple[str, str]) -> list[SourceMessage]:
    return [SourceMessage(role, CleanText(text)) for role, text in lines]


def test_the_users_own_words_win_over_the_assistants() -> None:
    talk = said(("assistant", "So you live in Oslo."), ("user", "I live in Oslo, yes."))
    [found] = placed([Fact(CleanText("User lives in Oslo"), 0.95)], talk)
    assert found.message == 1


def test_of_one_message_without_a_cue_everything_comes_from_it() -> None:
    [found] = placed([Fact(CleanText("Zebras are striped"), 0.95)], said(("user", "I live in Oslo.")))
    assert (found.message, found.correction, found.by_assistant) == (0, False, False)


def test_a_fact_that_nobody_said_has_no_message() -> None:
    [found] = placed([Fact(CleanText("Zebras are striped"), 0.95)], said(*TALK))
    assert (found.message, found.correction) == (None, False)


def test_what_the_model_calls_a_correction_is_one() -> None:
    [found] = placed([Fact(CleanText("User lives in Lisbon"), 0.95, correction=True)], said(*TALK))
    assert found.correction


def test_an_assistants_actually_corrects_nothing() -> None:
    talk = said(("assistant", "Actually, you like green tea."), ("user", "Hm."))
    [found] = placed([Fact(CleanText("User likes green tea"), 0.95)], talk)
    assert (found.message, found.correction) == (0, False)
