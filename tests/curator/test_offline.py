"""What does one fact do to the memories beside it, without a model?"""

from __future__ import annotations

import pytest

from service.curator.offline import OfflineEdit, ShownMemory, decide
from service.domain.decision import Action
from service.language.facts import Message, extract, read


def decided(new: str, *known: str, similarity: float = 0.8) -> tuple[OfflineEdit, ...]:
    fact = read(new)
    assert fact is not None
    return decide(fact, [ShownMemory(number, text, similarity) for number, text in enumerate(known, 1)])


@pytest.mark.parametrize(
    ("new", "old", "text"),
    [
        ("User moved to San Francisco", "User lives in NYC", "User moved to San Francisco"),
        ("works at Google as a senior engineer", "works in tech", "works at Google as a senior engineer"),
        ("started eating meat again", "is vegetarian", "started eating meat again"),
        ("User is a senior engineer", "User works at Google", "User works at Google as a senior engineer"),
        ("User was promoted to director", "User is an analyst at Acme", "User was promoted to director at Acme"),
        ("User prefers coffee over tea", "User prefers tea over coffee", "User prefers coffee over tea"),
        ("User switched from Vim to Emacs", "User uses Vim", "User switched from Vim to Emacs"),
        ("User ran a marathon last week", "User wants to run a marathon", "User ran a marathon last week"),
        ("User no longer likes tea", "User likes tea", "User no longer likes tea"),
        ("User quit smoking", "User smokes a pack a day", "User quit smoking"),
        ("User's dog Rex died", "User has a dog named Rex", "User's dog Rex died"),
        ("User has a dog named Rex", "User has a dog", "User has a dog named Rex"),
        ("User turned 35", "User is 34 years old", "User turned 35"),
        ("User runs 10 km a day", "User runs 5 km a day", "User runs 10 km a day"),
    ],
)
@pytest.mark.parametrize("similarity", [0.3, 0.95])
def test_update(new: str, old: str, text: str, similarity: float) -> None:
    first = decided(new, old, similarity=similarity)[0]
    assert (first.action, first.target, first.text) == (Action.UPDATE, 1, text)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("User lives in New York", "User lives in NYC"),
        ("User loves hiking", "User likes hiking"),
        ("User has a peanut allergy", "User is allergic to peanuts"),
        ("User works at Acme", "User works at Acme as a welder"),
        ("User likes tea", "User likes green tea"),
        ("User doesn't eat meat", "User is vegan"),
    ],
)
def test_none(new: str, old: str) -> None:
    assert [(v.action, v.target, v.text) for v in decided(new, old)] == [(Action.NONE, 1, None)]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("User likes coffee", "User likes tea"),
        ("User lives in Rome", "User's sister lives in Kiel"),
        ("User is moving to Berlin next month", "User lives in Munich"),
        ("User lived in Turin for a year", "User lives in Munich"),
        ("User visited Rome in 2019", "User visited Paris in 2018"),
        ("User volunteers at a shelter", "User works at Novartis"),
        ("User has a cat", "User has a dog named Rex"),
        ("User's brother is named Piet", "User's brother is named Jan"),
    ],
)
def test_add(new: str, old: str) -> None:
    assert [(v.action, v.target, v.text) for v in decided(new, old)] == [(Action.ADD, None, new)]


def test_nothing_known() -> None:
    assert decided("User lives in Oslo")[0].action is Action.ADD


def test_a_past_row_is_not_brought_back() -> None:
    verdicts = decided("User moved back to Berlin", "User used to live in Berlin", "User lives in Munich")
    assert [(v.action, v.target) for v in verdicts] == [(Action.UPDATE, 2)]
    assert decided("User moved back to Berlin", "User used to live in Berlin")[0].action is Action.ADD


def test_a_plan_that_came_true_makes_way() -> None:
    verdicts = decided("User lives in Berlin", "User is moving to Berlin next month", "User lives in Munich")
    assert [(v.action, v.target) for v in verdicts] == [(Action.UPDATE, 2), (Action.DELETE, 1)]


def test_the_users_own_name_means_the_user() -> None:
    verdicts = decided("User moved to York", "User's name is Alice", "Alice lives in Leeds")
    assert [(v.action, v.target) for v in verdicts] == [(Action.UPDATE, 2)]


def test_r18_43_the_new_job_updates_the_old_one() -> None:
    (fact,) = extract([Message("user", "I just got a new job at Globex as ML lead")])
    known = [ShownMemory(1, "User's name is Alice", 0.4), ShownMemory(2, "User is a data scientist at Acme Corp", 0.7)]
    (verdict,) = decide(fact, known)
    assert (verdict.action, verdict.target) == (Action.UPDATE, 2)
    assert verdict.text is not None
    assert "Globex" in verdict.text
    assert "ML lead" in verdict.text


def test_unreadable_memories_are_left_to_the_words() -> None:
    assert decided("User lives in Oslo", "Notes: 1, 2, 3")[0].action is Action.ADD
