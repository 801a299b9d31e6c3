"""The context of a turn: the turns before it, read together with its own text.

An answer is often found by the question before it ("How often do you work out?" "Three times a week."). So a turn of
a conversation has, apart from its own lexical columns and vector, a context: the turns before it together with its
own text. Context comes from the same conversation only, and dedup never reads it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from service.domain.text import CleanText
from service.language import sentences
from service.language.lexemes import lexemes

PRECEDING: Final = 2
"""The number of turns before a turn that its context includes. Two found more than one, three or the following turn
(measured)."""

MAX_ASKED: Final = 2
"""The number of questions of the turn before that the vector of a turn includes."""

QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f")

MAX_NEIGHBOUR_CHARS: Final = 300
"""Only the end of a neighbour is read: that is where a long message asks what the next one answers."""


@dataclass(frozen=True, slots=True)
class ContextTurn:
    """What was said, redacted; `speaker` as the client named them, or the role, or None."""

    text: CleanText
    speaker: str | None = None


def lexical_text(turn: ContextTurn, before: Sequence[ContextTurn]) -> CleanText:
    """Returns the text of `context_terms` and `context_bm25`; `before`: the turns before it, oldest first."""
    near = [end_of(context_turn.text) for context_turn in before[-PRECEDING:]]
    return CleanText("\n".join([*near, turn.text]))


def embedded_text(turn: ContextTurn, before: Sequence[ContextTurn]) -> CleanText:
    """Returns the text of the vector of kind context: what the turn just before asks, then the turn itself.

    The speaker's name makes "I" somebody. More of the turn before blurs the vector, and so do more turns; the turn
    first and the question after it found less (measured).
    """
    own = f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text
    return CleanText(f"{_find_question(before[-1].text)}\n{own}" if before else own)


def question_share(text: str) -> float:
    """Returns the share of a text's terms that are in questions, 0..1; 0 for a text without terms.

    A question shares its words with a question asked of memory, but answers nothing.
    """
    if not any(mark in text for mark in QUESTION_MARKS):  # most texts: this is asked of every candidate of a search
        return 0.0
    asked = stated = 0
    for start, end in sentences.split(text):
        count = len(lexemes(text[start:end]))
        if text[start:end].rstrip("\"')\u201d\u2019 ").endswith(QUESTION_MARKS):
            asked += count
        else:
            stated += count
    return asked / (asked + stated) if asked else 0.0


_WORD: Final = re.compile(r"[a-z]+")
_MINE: Final = frozenset({"i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves"})
_YOURS: Final = frozenset({"you", "your", "yours", "yourself", "yourselves", "ya"})


def first_person(text: str) -> float:
    """Returns how far a text is about its speaker rather than its listener, 0..1; 0.5 if it names neither. English.

    "You'll be an awesome mom!" is about the listener, no matter who is named in the question. 5 µs for 130 characters.
    """
    words = _WORD.findall(text.lower())
    mine, yours = sum(word in _MINE for word in words), sum(word in _YOURS for word in words)
    return (mine + 1) / (mine + yours + 2)


def end_of(text: str, max_chars: int = MAX_NEIGHBOUR_CHARS) -> str:
    """Returns the last characters of a text, from the beginning of a word where there is one."""
    if len(text) <= max_chars:
        return text
    tail = text[-max_chars:]
    return tail if text[-max_chars - 1].isspace() else re.sub(r"^\S+\s+(?=\S)", "", tail)


def _find_question(text: str) -> str:
    """The questions at the end of a text, two at most; its last sentence where it asks nothing there."""
    near = end_of(text)
    said = [near[start:end] for start, end in sentences.split(near)]
    questions = [each for each in said if each.endswith(QUESTION_MARKS)]
    return " ".join(questions[-MAX_ASKED:] or said[-1:])
