"""The checks of a model's facts and of the texts that it writes for memories, and the messages they come from."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from service.domain.fact import Fact
from service.domain.text import CleanText
from service.language.talk import Utterance
from service.understanding import grounding
from service.understanding.grounding import ground
from service.understanding.sourcing import SourceTurns

Turn = tuple[str, str]


def claims_more(fact: str, *turns: Turn | str) -> bool:
    said = [("user", each) if isinstance(each, str) else each for each in turns]
    return grounding.claims_more(fact, SourceTurns([Utterance(role, CleanText(text)) for role, text in said]))


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ("User lives in Oslo", "I live in Oslo with my sister."),
        ("User has two cats", "We've got 2 cats, Tom and Ida."),
        ("User's brother is allergic to penicillin", "My brother is allergic to penicillin."),
        ("User has a cat named Tom", "My cat is named Tom."),
        ("User owns a red boat", "My boat is red."),
        ("User is a cook at Acme", "I'm a cook at Acme, I work with Tom and Ida."),
        ("User does not eat meat", "I don't eat meat."),
        ("User might move to Rome", "I might move to Rome."),
        ("User moved from Oslo to Bergen", "I moved from Oslo to Bergen."),
        ("User went to the dentist (3 March 2026)", "I went to the dentist on 3 March 2026."),
        ("Anna is 30 and Ben is 40", "Anna is 30 and Ben is 40."),
        ("User works from 6 to 7 pm", "I work 6-7pm."),
        ("User's train leaves on Thursday", "No, I meant my train leaves on Thursday."),
        ("User goes to Rome in May", "I go to Rome in May."),
    ],
)
def test_what_was_said_passes(fact: str, said: str) -> None:
    assert not claims_more(fact, said)


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ("User is allergic to penicillin.", "My brother is allergic to penicillin."),
        ("User is a vet", "My sister is a vet."),
        ("User drives a Tesla", "My boss drives a Tesla."),
        ("User has a dog", "My sister has a dog."),
        ("User has a dog", "My dog died."),
        ("User has a dog named Rex", "My dog Rex died."),
        ("User follows a low-salt diet", "A patient of mine follows a low-salt diet."),
        ("User moved from Bergen to Oslo", "I moved from Oslo to Bergen."),
        ("Ann lent User 20 euros", "I lent Ann 20 euros."),
        ("Ann is 40 and Ben is 30", "Ann is 30 and Ben is 40."),
        ("User lives in Texas", "I live in Oslo."),
        ("User has three cats", "I have two cats."),
        ("User hates jazz", "I never said that I hate jazz."),
        ("User likes jazz", "I don't like jazz."),
        ("User could go to Rome", "Should I go to Rome?"),
        ("User goes to Rome", "I could go to Rome."),
        ("User bought a boat", "I almost bought a boat."),
        ("User goes to Rome in May", "I could go to Rome in May."),
        ("User drinks", "I hardly ever drink."),
        ("User is allergic to cats", "I doubt that I'm allergic to cats."),
        ("User moved to Bonn", "Anna moved to Bonn."),
        ("User's alarm is at 6 pm", "My alarm is at 6 am."),
        ("User is pregnant", "Imagine I'm pregnant."),
        ("User owns a zeppelin", "I like tea."),
        ("User was in Rome (5 March 2026)", "I was in Rome on 2 February 2025."),
    ],
)
def test_what_claims_more_is_refused(fact: str, said: str) -> None:
    assert claims_more(fact, said)


def test_an_assistants_proposal_is_a_fact_only_where_it_is_taken_up() -> None:
    plan = ("assistant", "You could go to Bruges. Shall we book Hotel Oud?")
    assert claims_more("User is staying at Hotel Oud", "Can you plan a trip?", plan)
    assert not claims_more("User books Hotel Oud", "Can you plan a trip?", plan, "yes, please")
    assert claims_more("User recursion used", ("assistant", "I used recursion there."))


@pytest.mark.parametrize(
    "text",
    [
        "User hates Chinese food and married Emily.",
        "User hates Chinese food now because it made them ill in 2019.",
        "User hates Chinese food now and moved to Texas.",
        "User hates Italian food now.",
        "User loves Chinese food now.",
        "User doesn't hate Chinese food now.",
        "User may hate Chinese food now.",
        "Does User hate Chinese food now?",
        "User hates food.",
        "User hates Chinese food now. " * 10,
    ],
)
def test_a_decision_may_not_write_what_neither_says(text: str) -> None:
    assert not grounding.is_borne_out(text, "User hates Chinese food now.", "User loves Chinese food.")


def test_a_decision_may_unite_both() -> None:
    assert grounding.is_borne_out("User has a dog named Rex and a cat", "User has a cat", "User has a dog named Rex")


def test_a_memory_says_a_fact_only_with_all_its_words() -> None:
    assert grounding.says_it("User has a big dog named Rex", "User has a dog named Rex")
    assert not grounding.says_it("User has a dog named Rex", "User has a dog named Bella too")
    assert not grounding.says_it("User has 2 dogs", "User has 3 dogs")
    assert not grounding.says_it("User likes jazz", "User does not like jazz")


# -- sources -----------------------------------------------------------------------------------------------------------

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


ECHO = [("assistant", "So you live in Oslo."), ("user", "I live in Oslo, yes.")]
REMINDER = [("assistant", "Actually, you like green tea."), ("user", "Right.")]


@pytest.mark.parametrize(
    ("talk", "text", "parts", "message", "correction"),
    [
        (ECHO, "User lives in Oslo", {}, 1, False),  # the user's own words win over the assistant's
        (TALK, "User has a cat", {"message": 7}, 0, False),  # a wrong number does not place a fact
        (TALK, "User has a cat", {"message": 2}, 0, False),
        (TALK, "User has a dog", {}, 2, True),
        (TALK, "User lives in Lisbon", {"correction": True}, 0, True),  # as the model says
        (REMINDER, "User likes green tea", {}, 0, False),  # an assistant's "actually" corrects nothing
    ],
)
def test_where_a_fact_is_found_and_whether_it_corrects(
    talk: list[Turn], text: str, parts: dict[str, object], message: int, correction: bool
) -> None:
    fact = found(text, said(*talk), **parts)
    assert (fact.message, fact.correction, fact.by_assistant) == (message, correction, talk is REMINDER)


def test_a_fact_knows_its_message_and_its_sentence() -> None:
    fact = found("User has a cat", said(*TALK))
    assert (fact.message, fact.correction, fact.by_assistant) == (0, False, False)
    assert TALK[0][1][fact.start : fact.end] == "I have a cat."
