"""What kind of thing a question asks for, and whether a text holds one. Pure.

Only names and figures: nearly every text holds a place or a reason, and a day may be the one on which it was said.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Final, Literal

from service.language.common_words import CALENDAR, is_common
from service.language.lexemes import lexemes

Kind = Literal["name", "figure"]

_ASKS_NAME: Final = re.compile(r"\bwho(?:m|se)?\b|\bnames?\b|\bcalled\b|\btitles?\b", re.IGNORECASE)
_ASKS_FIGURE: Final = re.compile(
    r"\bhow (?:much|old|long|far|tall|big|large|heavy|deep|high|often)\b"
    r"|\b(?:price|costs?|salary|rent|fee|budget|deposit|age|number)\b",
    re.IGNORECASE,
)
_FIGURE: Final = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|hundred|thousand|million|dozen|half|once|twice)\b",
    re.IGNORECASE,
)
_CAPITALISED: Final = re.compile(r"\b[A-Z\u00c0-\u00de][\w\u2019'-]+")


def kind(question: str) -> Kind | None:
    """What the answer contains; None if unknown."""
    if _ASKS_NAME.search(question):
        return "name"
    return "figure" if _ASKS_FIGURE.search(question) else None


def holds(asked: Kind, text: str, known: Set[str]) -> bool:
    """Whether a text has a figure, or a name without a lexeme of `known`: the question itself has those."""
    if asked == "figure":
        return _FIGURE.search(text) is not None
    return any(
        not is_common(word) and word.casefold() not in CALENDAR and known.isdisjoint(lexemes(word))
        for word in _CAPITALISED.findall(text)
    )
