"""The lines of a message, and the stretches of it that are not its sender's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

LINE = re.compile(r"[^\r\n\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Block:
    """A half-open span of a message in one voice. `speaker`: who is quoted, None for the sender.

    `whole`: a sentence with what it quotes, which is not to be cut where a quoted sentence ends.
    """

    start: int
    end: int
    speaker: str | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or what is left of one. `row`: its number among those with text. `apart`: an empty line is before it."""

    row: int
    start: int
    end: int
    text: str
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Pasted:
    """A half-open span that is not the sender's own words. `quoted`: what of it is told, and in whose name."""

    start: int
    end: int
    quoted: Block | None = None


def lines_of(text: str) -> list[Line]:
    """The lines that are not empty."""
    found: list[Line] = []
    end = 0
    for match in LINE.finditer(text):
        if match.group().strip():
            gap = text[end : match.start()].replace("\r\n", "\n")
            found.append(Line(len(found), match.start(), match.end(), match.group(), bool(found) and len(gap) > 1))
            end = match.end()
    return found


def paragraphs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Runs of lines that follow each other without an empty or a pasted one between them."""
    run: list[Line] = []
    for line in lines:
        if run and (line.apart or line.row > run[-1].row + 1):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def pasted(lines: Iterable[Line], speaker: str | None = None) -> Iterator[Pasted]:
    """The lines as pasted ones, told in the name of `speaker` where he is known."""
    for line in lines:
        yield Pasted(line.start, line.end, Block(line.start, line.end, speaker) if speaker else None)


def without(lines: Sequence[Line], found: Iterable[Pasted]) -> list[Line]:
    """What the pasted stretches leave of the lines."""
    cuts = sorted(found, key=lambda each: each.start)
    left: list[Line] = []
    at = 0
    for line in lines:
        start = line.start
        while at < len(cuts) and cuts[at].start < line.end:
            if cuts[at].end > start:
                left.extend(_piece(line, start, cuts[at].start))
                start = cuts[at].end
            if cuts[at].end > line.end:
                break
            at += 1
        left.extend(_piece(line, start, line.end))
    return left


def _piece(line: Line, start: int, end: int) -> Iterator[Line]:
    text = line.text[start - line.start : max(start, end) - line.start]
    if text.strip(" \t.,;"):
        yield Line(line.row, start, end, text, line.apart)
