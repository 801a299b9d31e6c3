"""Are slips of the finger mended, and words and names that are none left alone?"""

from __future__ import annotations

import pytest

from service.language.facts import typos


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("becuase", "because"),
        ("langauge", "language"),
        ("aprenticeship", "apprenticeship"),
        ("whereever", "wherever"),
        ("alredy", "already"),
        ("tommorow", "tomorrow"),
        ("thier", "their"),
    ],
)
def test_mended(typed: str, meant: str) -> None:
    assert typos.meant(typed) == meant


@pytest.mark.parametrize(
    "word", ["feather", "bother", "boiler", "doncaster", "saoirse", "leith", "teh", "because", "turin"]
)
def test_left_alone(word: str) -> None:
    assert typos.meant(word) is None
