"""Are tags and their prefixes stored in one form?"""

from __future__ import annotations

import pytest

from service.language import tags


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Work, home,,  ,WORK", ("work", "home")),
        (["Work", " home ", "", "work"], ("work", "home")),
        (["a,b"], ("a,b",)),
        ("", ()),
        ([], ()),
        ("ÄRGER", ("ärger",)),
        (("b", "a"), ("b", "a")),
    ],
)
def test_normalise(given: list[str] | str, expected: tuple[str, ...]) -> None:
    assert tags.normalise(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["slack:channel:general"], ("slack", "slack:channel", "slack:channel:general")),
        (["project:AutoMem:api"], ("project", "project:automem", "project:automem:api")),
        (["a/b:c"], ("a", "a/b", "a/b:c")),
        (["slack:user:U123", "slack:channel"], ("slack", "slack:user", "slack:user:u123", "slack:channel")),
        (["plain"], ("plain",)),
        (["https://x"], ("https", "https://x")),
        ([":x"], (":x",)),
        (["a:"], ("a", "a:")),
        ([], ()),
    ],
)
def test_prefixes(given: list[str], expected: tuple[str, ...]) -> None:
    assert tags.prefixes(given) == expected
