"""The rules need CPU in proportion to the length of a text, whatever it repeats: `make hostile` in short."""

from __future__ import annotations

import itertools
import json

import pytest

from bench import hostile, hostile_corpus
from bench.hostile import Cost
from bench.hostile_corpus import TOKENS, HostileText
from bench.hostile_entries import USUAL
from tests.thorough import THOROUGH

RULES = (
    "talk, one message",
    "detection.redact",
    "entities and relations",
    "sentences",
    "query",
    "request to forget",
    "query to forget",
    "kinds",
    "importance",
    "term weights",
)
SMALL, LARGE = 1024, 4096


def _tried(rule: str) -> list[tuple[str, str]]:
    """In CI a third of the classes for each rule, another third for the next one."""
    found = list(TOKENS.items())
    return found if THOROUGH else found[RULES.index(rule) % 3 :: 3]


@pytest.mark.parametrize("rule", RULES)
def test_no_class_of_token_makes_a_rule_steep(rule: str) -> None:
    hostile.cpu_s(rule, HostileText("usual", USUAL + " "), SMALL)  # what is loaded once
    costs = [hostile.compared(rule, HostileText(name, token), SMALL, LARGE) for name, token in _tried(rule)]
    steep = [f"{each.text}: {each.seconds}" for each in costs if each.is_steep]
    assert not steep, "\n".join(steep)


@pytest.mark.parametrize("name", ["quote said", "speaker", "paragraph"])
def test_talk_that_quotes_and_changes_speakers_is_read_in_linear_time(name: str) -> None:
    """Each piece looks back at what was said before, which once made these steep; 4 kB is too short to tell."""
    cost = hostile.compared("talk, one message", HostileText(name, TOKENS[name]), 4 * SMALL, 4 * LARGE)
    assert not cost.is_steep, cost.seconds


def test_what_is_quadratic_is_called_steep() -> None:
    assert Cost("a", "b", {1024: 0.02, 4096: 0.32}).is_steep
    assert not Cost("a", "b", {1024: 0.02, 4096: 0.08}).is_steep
    assert not Cost("a", "b", {1024: 0.0001, 4096: 0.002}).is_steep, "too little to tell"


# -- the corpus --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chars", [1_000, 4_096])
def test_every_text_has_the_length_asked_for(chars: int) -> None:
    assert {len(each.of_length(chars)) for each in hostile_corpus.texts()} == {chars}
    assert {len(each.of_length(chars)) for each in hostile_corpus.mixtures(50)} == {chars}


def test_names_are_distinct() -> None:
    names = [each.name for each in itertools.chain(hostile_corpus.texts(), hostile_corpus.pairs())]
    assert len(names) == len(set(names))


def test_bodies_are_json_of_the_size_asked_for_and_come_in_the_same_order() -> None:
    first = list(itertools.islice(hostile_corpus.bodies(20_000), 300))
    assert first == list(itertools.islice(hostile_corpus.bodies(20_000), 300))
    for each in first:
        assert json.loads(each.body)["user_id"] == "hostile"
        assert 18_000 < len(each.body) < 40_000, each.name
