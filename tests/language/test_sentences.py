"""Are sentences cut where a reader would cut them, with exact offsets?"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.language import sentences


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences.split(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t\n ", []),
        ("One.", ["One."]),
        ("Dr. Meyer left. Anna stayed.", ["Dr. Meyer left.", "Anna stayed."]),
        ("Version 1.2.3 is out! Try it.", ["Version 1.2.3 is out!", "Try it."]),
        ("I'm at Acme Corp. I work on NLP. It is fun.", ["I'm at Acme Corp.", "I work on NLP.", "It is fun."]),
        ("We moved to the U.S. I'm glad.", ["We moved to the U.S.", "I'm glad."]),
        ("When I left Acme Corp. I learned Go.", ["When I left Acme Corp. I learned Go."]),
        ("I like Apple Inc. products.", ["I like Apple Inc. products."]),
        ("buy milk\nbuy eggs", ["buy milk", "buy eggs"]),
        ("a\r\nb", ["a", "b"]),
        ("  So?  Yes. ", ["So?", "Yes."]),
        ("Party 🎉 today. Älter? Ja.", ["Party 🎉 today.", "Älter?", "Ja."]),
    ],
)
def test_split(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


@given(st.text(max_size=200))
def test_spans_are_ordered_and_lose_nothing_but_blanks(text: str) -> None:
    spans = sentences.split(text)
    assert all(left < right for left, right in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert "".join("".join(pieces(text)).split()) == "".join(text.split())
