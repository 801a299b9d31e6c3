"""What one fact does to the stored memories near it, without a model."""

from __future__ import annotations

from service.curator.offline import OfflineEdit, ShownMemory, decide
from service.domain.decision import Action
from service.language.facts import Message, extract, read


def decided(new: str, *known: str, similarity: float = 0.8) -> tuple[OfflineEdit, ...]:
    fact = read(new)
    assert fact is not None
    return decide(fact, [ShownMemory(number, text, similarity) for number, text in enumerate(known, 1)])


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


def test_the_new_job_updates_the_old_one() -> None:
    (fact,) = extract([Message("user", "I just got a new job at Globex as ML lead")])
    known = [ShownMemory(1, "User's name is Alice", 0.4), ShownMemory(2, "User is a data scientist at Acme Corp", 0.7)]
    (verdict,) = decide(fact, known)
    assert (verdict.action, verdict.target) == (Action.UPDATE, 2)
    assert verdict.text is not None
    assert "Globex" in verdict.text
    assert "ML lead" in verdict.text


def test_unreadable_memories_are_left_to_the_words() -> None:
    assert decided("User lives in Oslo", "Notes: 1, 2, 3")[0].action is Action.ADD
