"""Every recipe of the hostile corpus has the length asked for; the same seed gives the same bodies."""

from __future__ import annotations

import itertools
import json

import pytest

from bench import hostile_corpus


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
