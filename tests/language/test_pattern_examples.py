"""What is an example of a pattern, and what only looks like one."""

from __future__ import annotations

import pytest

from service.language.pattern_examples import share

PATTERN = "Ann usually runs tests before deploying"


@pytest.mark.parametrize(
    ("text", "pattern", "is_example"),
    [
        ("Ann runs the slow tests on Friday before deploying billing", PATTERN, True),
        ("Ann often runs tests before deploying", PATTERN, True),
        ("Deploying, Ann runs tests before lunch", PATTERN, False),
        ("Ann never runs tests before deploying", PATTERN, False),
        ("Bob runs tests before deploying", PATTERN, False),
        ("Does Ann run tests before deploying?", PATTERN, False),
        ("Bob reviews code of Ann", "Ann usually reviews code of Bob", False),
        ("Ann runs", "Usually runs", False),
    ],
)
def test_all_words_in_their_order(text: str, pattern: str, is_example: bool) -> None:
    found = share(text, pattern)
    assert (found is not None) == is_example
    assert found is None or 0 < found <= 1
