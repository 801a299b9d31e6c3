"""Are run-on statements parted, and words that belong to the noun before them left there?"""

from __future__ import annotations

import pytest

from service.language.facts import Message, extract, run_ons


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("we don't have a car we just use the bikes", ["we don't have a car", "we just use the bikes"]),
        ("I'm joana I'm 34", ["I'm joana", "I'm 34"]),
        ("my husband hates fish he's a picky eater", ["my husband hates fish", "he's a picky eater"]),
        ("I love the car we just bought", ["I love the car we just bought"]),
        ("the project I'm working on is late", ["the project I'm working on is late"]),
        ("my doctor told me I have high cholesterol", ["my doctor told me I have high cholesterol"]),
        ("the first time I met my wife", ["the first time I met my wife"]),
        ("I think I'm a morning person", ["I think I'm a morning person"]),
        ("i hate the gym i swim instead", ["i hate the gym", "i swim instead"]),
        ("i live near hull my boyfriend works on the boats", ["i live near hull", "my boyfriend works on the boats"]),
        ("i work nights love it hate the pay", ["i work nights love it", "hate the pay"]),
        ("we bought a house last year it needs a new roof", ["we bought a house last year", "it needs a new roof"]),
        ("the flat i live in is damp", ["the flat i live in is damp"]),
        ("the guy i met last year plays chess", ["the guy i met last year plays chess"]),
        ("i love my dog so much", ["i love my dog so much"]),
        ("do i need a visa", ["do i need a visa"]),
    ],
)
def test_parted(sentence: str, parts: list[str]) -> None:
    begin, found = 0, []
    for start, end in run_ons.starts(sentence):
        found.append(sentence[begin:start])
        begin = end
    assert [*found, sentence[begin:]] == parts


def test_each_part_is_a_fact() -> None:
    found = extract([Message("user", "i work at lidl i have two kids")])
    assert [fact.text for fact in found] == ["User works at lidl", "User has two kids"]
