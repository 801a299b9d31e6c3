"""Texts without the sentences that are withdrawn from them. Pure.

A span is a half-open pair of character offsets. A sentence stays as long as any live memory rests on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

Span = tuple[int, int]

_WORD: Final = re.compile(r"\w+")
_SPEAKER: Final = re.compile(r"^[^:\n]{1,60}: ")


def locate(quote: str, text: str) -> Span:
    """The span of a quote in a text, with or without the speaker in front of it, in any case; the whole text if it is
    not found."""
    for part in (quote, _SPEAKER.sub("", quote)):
        match = re.search(re.escape(part.strip()), text, re.IGNORECASE)
        if match is not None and match.end() > match.start():
            return match.span()
    return 0, len(text)


def still_said(old: str, new: str) -> bool:
    """Whether a new text has all words of the old one in a row, in any case: it only adds to what was said."""
    before, after = (" ".join(_WORD.findall(_SPEAKER.sub("", text).casefold())) for text in (old, new))
    return not before or f" {before} " in f" {after} "


def subtract(spans: Iterable[Span], kept: Iterable[Span]) -> list[Span]:
    """The union of `spans` less the union of `kept`, in order."""
    edges = [(at, step, 0) for span in spans for at, step in zip(span, (1, -1), strict=True)]
    edges += [(at, 0, step) for span in kept for at, step in zip(span, (1, -1), strict=True)]
    left: list[Span] = []
    inside = holes = begin = 0
    for at, step, hole_step in sorted(edges):
        if inside > 0 and holes <= 0 and begin < at:
            if left and left[-1][1] == begin:
                begin = left.pop()[0]
            left.append((begin, at))
        inside, holes, begin = inside + step, holes + hole_step, at
    return left


def hide(text: str, hidden: Sequence[Span]) -> str:
    """The text without the hidden spans; empty when no word is left. `hidden`: in order, not overlapping."""
    pieces = []
    at = 0
    for start, end in [*hidden, (len(text), len(text))]:
        piece = text[at:start]
        if _WORD.search(piece):
            pieces.append(piece)
        at = end
    joined = [piece.strip() for piece in pieces[:1]]
    for before, piece in pairwise(pieces):
        gap = before[len(before.rstrip()) :] + piece[: len(piece) - len(piece.lstrip())]
        joined += ["\n" if "\n" in gap else " ", piece.strip()]
    return "".join(joined)


def move(span: Span, removed: Sequence[Span]) -> Span:
    """The span in a text from which these spans were cut; empty when it lay in one of them."""
    start, end = (at - sum(min(at, right) - left for left, right in removed if left < at) for at in span)
    return start, max(start, end)


def cut(text: str, removed: Sequence[Span]) -> str:
    """The text with these spans cut out and nothing else changed, so that `move` fits."""
    for start, end in reversed(removed):
        text = text[:start] + text[end:]
    return text
