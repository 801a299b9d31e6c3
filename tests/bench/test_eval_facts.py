"""The reports on stored facts: the rule of unresolved pronouns, the messages sent, and the tables."""

from __future__ import annotations

import pytest

from bench.evals import facts, sessions
from bench.evals.pronouns import has_pronoun, unresolved
from bench.evals.stored_facts import StoredFact, messages_of

SPEAKERS = ("Ann", "Tom")


@pytest.mark.parametrize(
    "text",
    [
        "Ann loves it.",
        "It's been hard for Ann.",
        "Ann thought of that.",
        "That helps Ann.",
        "Tom: She is kind.",
        "Ann goes there every week.",
        "They gave Ann a prize.",
        "Ann never had a chance to visit it.",
        "Ann wants her kids to learn that too.",
    ],
)
def test_a_pronoun_with_nothing_before_it_is_unresolved(text: str) -> None:
    assert unresolved(text, SPEAKERS)


@pytest.mark.parametrize(
    "text",
    [
        "Ann planted a rose and it grew.",
        "Tom met Maria and she helped him.",
        "Ann's mother said she would come.",
        "It rained all day.",
        "There are two cats in Ann's house.",
        "Ann thinks that cats are fun.",
        "Ann bought that lamp.",
        "Tom went to Lisbon and works there.",
        "Ann sold her car.",
        "Tom does what they love.",
        "Tom lost the race, and that hurts.",
    ],
)
def test_expletives_conjunctions_and_pronouns_with_an_antecedent_are_not(text: str) -> None:
    assert not unresolved(text, SPEAKERS)


def test_a_pronoun_is_seen_whatever_it_means() -> None:
    assert has_pronoun("Ann planted a rose and it grew.")
    assert not has_pronoun("Ann thinks that it rained.")


def test_roles_are_roles_and_people_are_users_with_a_name() -> None:
    turns = [{"id": "1", "speaker": "assistant", "text": "Hi"}, {"id": "2", "speaker": "Ann", "text": "Hello"}]
    first, second = messages_of({"id": "s", "datetime": "2026-01-01T10:00:00", "turns": turns})
    assert first == {"role": "assistant", "content": "Hi", "timestamp": "2026-01-01T10:00:00+00:00"}
    assert (second["role"], second["name"], second["timestamp"]) == ("user", "Ann", "2026-01-01T10:00:01+00:00")


def test_coverage_counts_evidence_turns_once() -> None:
    turns = [{"id": each} for each in "abcd"]
    conversation = {"id": "c", "speakers": SPEAKERS, "sessions": [{"id": "s", "turns": turns}]}
    asked = [{"conversation_id": "c", "evidence": ["a", "b"]}, {"conversation_id": "c", "evidence": ["b"]}]
    found = {
        "c": [StoredFact("1", "Ann has a cat.", frozenset({("s", "b")})), StoredFact("2", "It purrs.", frozenset())]
    }
    last = facts.shown([conversation], asked, found).splitlines()[-1]
    assert last.split() == ["all", "4", "2", "0.500", "2", "0.500", "0.500", "0.500"]


def test_the_share_of_sessions_is_the_mean_over_questions() -> None:
    assert sessions.shown([("a", 1.0), ("a", 0.0), ("b", 0.5)]).splitlines()[-1].split() == ["all", "3", "0.500"]
