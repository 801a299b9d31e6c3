"""Requests to forget in what a user says: "Please forget that I have a cat", "Delete everything about Wanda".

Only an order to whoever keeps the memories counts: not "Don't forget to call", "I forgot my keys", "Forget it", nor
what is quoted or pasted. What is meant by the object is another matter (forget_query.py). English. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from service.language import sentences
from service.language.talk.passages import passages

Sort = Literal["statement", "everything", "thing"]


@dataclass(frozen=True, slots=True)
class ForgetWish:
    """The half-open span of the sentence that asks, and the words that say what to forget. `sort`: a statement ("that I
    have a cat"), everything about something, or a thing."""

    start: int
    end: int
    query: str
    sort: Sort


_BEFORE: Final = (
    r"^(?:(?:oh|ok(?:ay)?|hey|hi|hello|also|and|so|well|actually|now|sorry|thanks|wait|assistant)\b[\s,!.:-]*)*"
    r"(?:(?:please|pls|kindly)\b[\s,]*|(?P<asked>(?:can|could|would|will)\s+you\s+(?:please\s+)?|"
    r"i(?:'d|\u2019d| would)?\s+(?:want|like|need)\s+you\s+to\s+|you\s+(?:can|should|must|may)\s+)(?:please\s+)?)?"
)
_FORGET: Final = re.compile(
    _BEFORE + r"(?P<verb>forget|unlearn|stop\s+remembering|(?:do\s+not|don['\u2019]t)\s+remember)\s+(?P<object>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_DELETE: Final = re.compile(
    _BEFORE + r"(?P<verb>delete|remove|erase|wipe)\s+(?P<object>\S.*?)\s+(?:from|in|out\s+of)\s+"
    r"(?:your|the)\s+(?:memory|memories|mind|records?|notes)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_STATEMENT: Final = re.compile(r"^(?:the\s+fact\s+)?that\s+(?=\S+\s+\S)", re.IGNORECASE)
_EVERYTHING: Final = re.compile(
    r"^(?:(?:everything|anything|all|whatever)(?:\s+(?:that\s+)?(?:you\s+know|i\s+(?:ever\s+)?(?:said|told\s+you|"
    r"mentioned)|i(?:'ve|\u2019ve| have)\s+(?:ever\s+)?(?:said|told\s+you|mentioned)))?|"
    r"that\s+i\s+(?:told\s+you|mentioned)|what(?:ever)?\s+i\s+(?:ever\s+)?(?:said|told\s+you|mentioned)|what\s+you\s+know)\s+"
    r"(?:about|of|on|regarding|concerning)\s+(?P<about>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_OWN: Final = re.compile(r"^(?:about\s+)?(?:my|our)\s+(?P<thing>\S.*)$", re.IGNORECASE | re.DOTALL)
_NO_OBJECT: Final = re.compile(
    r"^(?:it|that|this|about\s+(?:it|that|this)|me(?:\s+not)?|to\b.*|everything|all|what\s+i\s+(?:just\s+)?(?:said|told"
    r"\s+you|wrote)|.*\b(?:instructions?|prompts?|above|previous|rules)\b.*)[\s.!]*$",
    re.IGNORECASE | re.DOTALL,
)
_NEVER_MIND: Final = re.compile(
    r",\s*(?:let['\u2019]?s|we|i|you|just|how|what|instead|try|do|use|go)\b|\binstead\b", re.IGNORECASE
)
_TAIL: Final = re.compile(
    r"[\s,]*(?:please|pls|thanks|thank\s+you|for\s+me|again|any\s*more|now)?[\s.!]*$", re.IGNORECASE
)
_QUOTE: Final = "\"'\u201c\u2018\u00ab>`"

MOST_CHARS: Final = 500
"""A longer sentence tells something; it is no order."""

_GAP: Final = 20
"""Characters before a sentence in which a quote or a colon would stand."""


def find(text: str) -> list[ForgetWish]:
    """The requests in a message of a user, in order."""
    return [wish for start, end in _own_sentences(text) if (wish := _read(text, start, end)) is not None]


def masked(text: str, wishes: list[ForgetWish]) -> str:
    """The text with blanks in the place of the requests, which are in order: they are no facts."""
    parts, after = [], 0
    for wish in wishes:
        parts += [text[after : wish.start], " " * (wish.end - wish.start)]
        after = wish.end
    return "".join([*parts, text[after:]])


def _own_sentences(text: str) -> Iterator[tuple[int, int]]:
    """The sentences that are the sender's own words."""
    for part in passages(text):
        if part.label is None and part.role == "user":
            for start, end in sentences.split(text[part.start : part.end]):
                yield part.start + start, part.start + end


def _read(text: str, start: int, end: int) -> ForgetWish | None:
    if end - start > MOST_CHARS:
        return None
    said = text[start:end]
    before = text[max(0, start - _GAP) : start].rstrip()
    if said.endswith("?") and not re.match(r"(?i)\W*(?:can|could|would|will)\b", said):
        return None
    if said[0] in _QUOTE or (before and before[-1] in ":\u201c\"'"):
        return None
    found = _DELETE.match(said.rstrip("?")) or _FORGET.match(said.rstrip("?"))
    if found is None:
        return None
    polite = "please" in said.lower() or found["asked"] is not None
    wish = _object(_TAIL.sub("", found["object"]), polite=polite or found["verb"].lower() != "forget")
    return None if wish is None else ForgetWish(start, end, *wish)


def _object(wanted: str, *, polite: bool) -> tuple[str, Sort] | None:
    """What is to be forgotten; None when it is left to guess."""
    if not wanted or _NO_OBJECT.match(wanted) or _NEVER_MIND.search(wanted):
        return None
    everything = _EVERYTHING.match(wanted)
    if everything is not None:
        return f"everything about {everything['about']}", "everything"
    statement = _STATEMENT.match(wanted)
    if statement is not None:
        return wanted[statement.end() :], "statement"
    own = _OWN.match(wanted)
    if own is not None:
        return own["thing"], "thing"
    return (re.sub(r"^about\s+", "", wanted, flags=re.IGNORECASE), "thing") if polite else None
