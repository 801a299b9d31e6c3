"""Lines of a list, each read with the heading in front of it.

"My goals:" and "I'm allergic to:" are read in front of each line behind them that opens with a dash or a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from service.language import sentences
from service.language.facts import verbs

_ITEM = re.compile(r"\s*(?:[-*•–+]\s+|\d{1,2}[.)]\s+)")
_NUMBER = re.compile(r"\d{1,2}[.)]")
_HEADING = re.compile(r"\W*(?P<head>(?:I|we|my|our|things I)(?:['’](?:m|ve|re))? ?\b[^:?!]{1,60}):", re.IGNORECASE)
_TOLD = re.compile(r"\b(?:is|are|includes?)$", re.IGNORECASE)


class BulletLine(NamedTuple):
    """A half-open span of the text. `heading`: what is read in front of an item, "" for every other sentence."""

    start: int
    end: int
    heading: str


def lines(text: str) -> Iterator[BulletLine]:
    """Yields the sentences of a text in order, headings and bare numbers left out."""
    heading, numbered = "", False
    for start, end in sentences.split(text):
        sentence = text[start:end]
        head = _HEADING.fullmatch(sentence)
        if head:
            heading = _opened(head["head"])
            continue
        if heading and _NUMBER.fullmatch(sentence):  # the splitter takes the number for a sentence
            numbered = True
            continue
        dash = _ITEM.match(sentence)
        if heading and (dash or numbered):
            begin = start + (dash.end() if dash else 0)
            yield BulletLine(begin, end, _before(heading, text[begin:end]))
        else:
            heading = ""
            yield BulletLine(start, end, "")
        numbered = False


def _opened(head: str) -> str:
    head = re.sub(r"^things (?=I\b)", "", head, flags=re.IGNORECASE)
    mine = re.match(r"(?:my|our)\b", head, re.IGNORECASE)
    return f"{head} are" if mine and not _TOLD.search(head) else head


def _before(heading: str, item: str) -> str:
    """ "My goals are" goes on with "to run a 10k", "My hobbies are" with "chess"."""
    first = verbs.form(item.split(None, 1)[0].lower())
    return f"{heading} to" if heading.endswith(" are") and first and first.shape == "base" else heading
