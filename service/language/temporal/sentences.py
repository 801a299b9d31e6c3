"""The sentences of a text, and the quick test for words of time in one.

The test is one linear walk over words and numbers, each looked up once. It errs on the side of looking: a false
alarm costs the rules some hundred microseconds, a miss costs the expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.language.temporal import words

MAX_CHARS = 400  # the longest stretch that is read as one sentence

_TOKEN = re.compile(r"[A-Za-z]{2,}|\d+")
# What may follow or precede the digits of a date, a time or a year.
_SHAPE = re.compile(
    r"(?:1[5-9]|20)\d\d(?!\d)|20\d{6}(?!\d)|\d{0,3}0['\u2019]?s\b|\d{1,2}(?::\d|[./-]\d|\s?[ap]\.?m?\b|(?:st|nd|rd|th)\b)",
    re.IGNORECASE,
)
_LEAD = re.compile(r"(?:\b[qh]|\b(?:at|from|between)\s|['\u2019])$", re.IGNORECASE)
_BREAK = re.compile(r"\n+|(?<=[.!?])[^\S\n]+")
_ABBREVIATION = re.compile(
    r"(?:\b[ap]\.m|\b[A-Z]|\b(?:Mr|Mrs|Dr|Ms|St|No|vs|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec))\.$"
)


def may_have_time(text: str) -> bool:
    """Whether the text holds any word or shape that times are expressed with."""
    for token in _TOKEN.finditer(text):
        start = token.start()
        if not text[start].isdigit():
            if token[0].lower() in words.CUES:
                return True
        elif _SHAPE.match(text, start) or _LEAD.search(text[max(0, start - 9) : start]):
            return True
    return False


def split(text: str) -> Iterator[tuple[int, int]]:
    """Spans of all sentences; ascending. One ends at a full stop before a capital, unless that belongs to "3 p.m.",
    "Oct. 5" or "Dr. Who"."""
    position = 0
    for gap in _BREAK.finditer(text):
        start, end = gap.span()
        if text[start] != "\n" and text[start - 1] == ".":
            follows = text[end : end + 1]
            capital = follows.isupper() or follows in "\"'\u201c("
            if not capital or _ABBREVIATION.search(text[max(0, start - 6) : start]):
                continue
        yield position, start
        position = end
    yield position, len(text)


def with_time(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the sentences that may have a time, cut at blanks where they are longer than MAX_CHARS; ascending."""
    for start, end in split(text):
        while start < end:
            blank = text.rfind(" ", start, start + MAX_CHARS) if end - start > MAX_CHARS else end
            cut = blank if blank > start else min(start + MAX_CHARS, end)
            if may_have_time(text[start:cut]):
                yield start, cut
            start = cut
