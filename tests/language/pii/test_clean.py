"""Does ordinary talk pass untouched: prose about credentials, code, logs, dates, numbers of every other kind?"""

from __future__ import annotations

from pathlib import Path

import pytest

from service.language import pii

LINES = [
    line
    for line in (Path(__file__).parent / "clean.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("# ")
]


def test_corpus_is_broad() -> None:
    assert len(LINES) >= 150


@pytest.mark.parametrize("line", LINES)
def test_clean_line_is_left_alone(line: str) -> None:
    assert pii.redact(line) == pii.Redacted(pii.redact(line).text, ())
    assert pii.redact(line).text == line


def test_the_whole_corpus_at_once() -> None:
    """Neighbouring lines give no false context either."""
    text = "\n".join(LINES) + "\nThat is all."
    assert [text[item.start - 30 : item.end] for item in pii.find(text)] == []
