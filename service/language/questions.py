"""Recognises what a question asks for. Cue lists for English, no parser; some microseconds each.

- `kind` and `holds`: a name or a figure, and whether a text has one. Only these: nearly every text holds a place or a
  reason, and a day may be the one on which it was said.
- `is_request`: an action ("Book me a flight to Rome") is answered by what its author likes, and hardly a word of it
  stands there. "What did you recommend?" and "Find out when I moved" ask for what was said: those are questions.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Final, Literal

from service.language import text_values
from service.language.common_words import CALENDAR, is_common
from service.language.lexemes import lexemes

Kind = Literal["name", "figure"]

_ASKS_NAME: Final = re.compile(r"\bwho(?:m|se)?\b|\bnames?\b|\bcalled\b|\btitles?\b", re.IGNORECASE)
_ASKS_FIGURE: Final = re.compile(
    r"\bhow (?:much|old|long|far|tall|big|large|heavy|deep|high|often)\b"
    r"|\b(?:price|costs?|salary|rent|fee|budget|deposit|age|number)\b",
    re.IGNORECASE,
)
_CAPITALISED: Final = re.compile(r"\b[A-Z\u00c0-\u00de][\w\u2019'-]+")


def kind(question: str) -> Kind | None:
    """What an answer to the question contains; None if unknown."""
    if _ASKS_NAME.search(question):
        return "name"
    return "figure" if _ASKS_FIGURE.search(question) else None


def holds(asked: Kind, text: str, known: Set[str]) -> bool:
    """Whether a text has a figure, or a name without a lexeme of `known`: the question itself has those."""
    if asked == "figure":
        return bool(text_values.figures(text))
    return any(
        not is_common(word) and word.casefold() not in CALENDAR and known.isdisjoint(lexemes(word))
        for word in _CAPITALISED.findall(text)
    )


_DO: Final = (
    r"(?:arrange|bake|book|bring|build|buy|choose|compose|cook|create|design|draft|explain|find(?!\s+out)|fix|get|help"
    r"|invite|make|order|organi[sz]e|pack|pick|plan|play|prepare|proofread|propose|put|recommend|redecorate|rent|reserve"
    r"|schedule|set\s+up|spend|suggest|write)"
)
_REQUEST: Final = re.compile(
    rf"^\W*(?:(?:please|hey|hi|hello|ok|okay|so|now|and|then)\W+)*"
    rf"(?:(?:can|could|would|will)\s+(?:you|we)\s+(?:please\s+)?|let['\u2019]?s\s+|let\s+us\s+)?{_DO}\b"
    r"|\b(?:should|shall|could|can)\s+(?:i|we)\b"
    r"|^\W*(?:i|we)(?:['\u2019](?:m|re|d)|\s+am|\s+are|\s+would)?\s+"
    r"(?:need|want|like|looking\s+for|looking\s+to|thinking\s+of|planning|trying)\b"
    r"|\b(?:any|some)\s+(?:good\s+)?(?:ideas?|suggestions?|tips|recommendations?)\b"
    r"|\b(?:for|suits?|fits?)\s+(?:me|us)\W*$",
    re.IGNORECASE,
)
_SAID: Final = re.compile(
    r"\b(?:did|have|had|was|were)\s+(?:i|you|we)\b|\b(?:i|you|we)\s+(?:\w+ly\s+)?(?:said|told|gave|mentioned|suggested"
    r"|recommended|advised|proposed|asked|talked|wrote)\b",
    re.IGNORECASE,
)
_PRESENT: Final = re.compile(
    r"\b(?:now|nowadays|current(?:ly)?|at\s+(?:the\s+moment|present)|presently|these\s+days|latest|newest"
    r"|most\s+recent(?:ly)?|so\s+far)\b",
    re.IGNORECASE,
)


_WHEN: Final = re.compile(
    r"^\W*(?:(?:and|so|since|until|by|from)\s+)*when\b|\b(?:what|which)\s+(?:dates?|days?|weeks?|months?|years?|time)\b"
    r"|\bhow\s+long\s+ago\b",
    re.IGNORECASE,
)


def is_request(text: str) -> bool:
    """Returns whether something is to be done, chosen or proposed for its author."""
    return _REQUEST.search(text) is not None and _SAID.search(text) is None


def asks_when(text: str) -> bool:
    """Returns whether it asks at which time something was or will be."""
    return _WHEN.search(text) is not None


def asks_the_present(text: str) -> bool:
    """Returns whether a question asks for the present state, so that the newest statement about it answers."""
    return _PRESENT.search(text) is not None
