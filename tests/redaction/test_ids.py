"""Ids in ordinary sentences stay: a random one must not look like a secret."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from service.redaction import detection

HEX, BASE_36, BASE_32 = "0123456789abcdef", "0123456789abcdefghijklmnopqrstuvwxyz", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
WORDS = ("itest", "run", "job", "node", "lisbon", "demo", "order", "anna", "stage", "e2e", "batch", "release")
SENTENCES = (
    "Lives in Porto {}",
    "Lives in Berlin {}",
    "We talked about {} yesterday",
    "My favourite is {}.",
    "{} is done",
    "Anna works on {} this week",
    "Let's go with {}",
    "the container {} was restarted",
    "Das Paket {} ist angekommen",
    "{}",
)


def draw(chance: random.Random, alphabet: str, length: int) -> str:
    return "".join(chance.choices(alphabet, k=length))


KINDS: dict[str, Callable[[random.Random], str]] = {
    "word and hex": lambda chance: f"{chance.choice(WORDS)}-{draw(chance, HEX, 10)}",
    "word and base 36": lambda chance: f"{chance.choice(WORDS)}_{draw(chance, BASE_36, 8)}",
    "short commit": lambda chance: draw(chance, HEX, chance.randrange(7, 13)),
    "base 36": lambda chance: draw(chance, BASE_36, chance.randrange(6, 13)),
    "capitals": lambda chance: draw(chance, BASE_36, chance.randrange(6, 11)).upper(),
    "UUID without dashes": lambda chance: draw(chance, HEX, 32),
    "ULID": lambda chance: "01J" + draw(chance, BASE_32, 23),
}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_stay(kind: str) -> None:
    chance = random.Random(kind)
    texts = [chance.choice(SENTENCES).format(KINDS[kind](chance)) for _ in range(400)]
    secrets = {"PASSWORD", "API_KEY"}
    assert [text for text in texts if any(item.label in secrets for item in detection.find(text))] == []
