"""The passages of a message: all of it, unless it is long.

A passage is what becomes one memory. Messages of more than MAX_CHARS are divided at paragraphs, lines and, in English,
sentences. Fenced blocks and quoted lines are not the sender's own words and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.language import sentences
from service.language.common_words import FUNCTION_WORDS

Span = tuple[int, int]

MAX_CHARS = 600
"""The length of a message above which it is divided."""

ENGLISH_SHARE, TELLING_WORDS = 0.15, 8
"""Share of English function words from which the sentence splitter may be asked."""

_LINE = re.compile(r"[^\r\n\u2028\u2029]+")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_QUOTED = re.compile(r"\s*>")


def passages(text: str) -> list[Span]:
    """The half-open spans of the passages of a message in order; none where all of it was pasted."""
    return [span for start, end in _runs(list(_own_lines(text))) for span in _short(text, start, end)]


def _own_lines(text: str) -> Iterator[Span]:
    fenced = False
    for line in _LINE.finditer(text):
        if _FENCE.match(line[0]):
            fenced = not fenced
        elif not fenced and line[0].strip() and not _QUOTED.match(line[0]):
            yield line.span()


def _runs(lines: Sequence[Span]) -> Iterator[Span]:
    """Lines with nothing but white space between them, together."""
    begin: int | None = None
    for place, (start, end) in enumerate(lines):
        begin = start if begin is None else begin
        following = lines[place + 1][0] if place + 1 < len(lines) else None
        if following is None or following - end > 4:
            yield begin, end
            begin = None


def _short(text: str, start: int, end: int) -> Iterator[Span]:
    """The span, trimmed; divided where it is long: at paragraphs and lines, and long English lines at sentences."""
    start, end = _trimmed(text, start, end)
    if end - start <= MAX_CHARS:
        if start < end:
            yield start, end
        return
    parts: list[Span] = []
    for line in _LINE.finditer(text, start, end):
        long = line.end() - line.start() > MAX_CHARS and _is_english(line.group())
        inside = sentences.split(line.group()) if long else [(0, line.end() - line.start())]
        parts += [(line.start() + left, line.start() + right) for left, right in inside]
    begin, last = parts[0]
    for left, right in parts[1:]:
        if right - begin > MAX_CHARS or text.count("\n", last, left) > 1:
            yield _trimmed(text, begin, last)
            begin = left
        last = right
    yield _trimmed(text, begin, last)


def _is_english(text: str) -> bool:
    words = [word.lower() for word in _WORD.findall(text[:2_000])]
    return len(words) < TELLING_WORDS or sum(map(FUNCTION_WORDS.__contains__, words)) >= ENGLISH_SHARE * len(words)


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    left = start + len(piece) - len(piece.lstrip())
    return left, max(left, start + len(piece.rstrip()))
