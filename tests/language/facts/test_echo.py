"""Is said-back memory told from news?"""

from __future__ import annotations

import pytest

from service.language.facts import is_echo

RECALLED = ["User lives in Oslo", "User likes green tea", "User's sister Una is a pilot"]


@pytest.mark.parametrize(
    "text",
    [
        "User lives in Oslo",
        "As I remember, you live in Oslo.",
        "You live in Oslo. You like green tea!",
        "I know that you like green tea",
        "Your sister Una is a pilot",
        "User lives in Oslo liking green tea",
    ],
)
def test_echo(text: str) -> None:
    assert is_echo(text, RECALLED)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "You live in Bergen",
        "You don't live in Oslo",
        "You live in Oslo and work at Acme",
        "You like green tea with honey and ginger",
        "I live in Oslo since 2019",
        "User's sister Una lives in Oslo",
        "User lives in Oslo and doesn't like green tea",
    ],
)
def test_no_echo(text: str) -> None:
    assert not is_echo(text, RECALLED)
    assert not is_echo(text, [])
