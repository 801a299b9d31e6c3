"""Does any text, however garbled, pass through without an error, and do the spans lie in it?"""

from __future__ import annotations

import random

from bench.evals import curator
from service.language.facts import Message, extract, read

TURNS = [
    turn[3:] for row in curator.rows(curator.CORPORA / "second-turns.jsonl", held_out=False) for turn in row["turns"]
]
JOINTS = [
    "my",
    "who's",
    "'s",
    "n",
    "2",
    "4",
    "r",
    "an",
    "been",
    "neither",
    "nor",
    "and",
    "so",
    "is",
    "*740",
    "actually",
    "no",
    "sorry",
    "I",
    "mean",
    "used",
    "to",
    "but",
    "yes",
    "is",
]


def test_garbled_talk_raises_nothing() -> None:
    chance = random.Random(7)
    words = [word for turn in TURNS for word in turn.split()] + JOINTS * 20
    for _ in range(600):
        said = " ".join(chance.choices(words, k=chance.randint(1, 14)))
        talk = [
            Message("user", chance.choice(TURNS)),
            Message("assistant", chance.choice(TURNS)),
            Message("user", said),
        ]
        for fact in extract(talk):
            assert 0 <= fact.start <= fact.end <= len(talk[fact.message].text)
            read(fact.text)


def test_a_possession_of_nothing_has_no_attribute() -> None:
    for text in ("User's is Rex", "User's 's is 5", "My is in Rome"):
        fact = read(text)
        assert fact is None or fact.slot is None or fact.value
