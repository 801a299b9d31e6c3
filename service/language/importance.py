"""The importance of a memory, by rules, and hints on how its text would make a better one; nothing is refused.

Without an LLM the level is

    level = clamp(base + stakes + reason - minor, 1, 10)        a bare acknowledgement: 1, a trivial edit: 2

- base: by type, inside the documented typical ranges (Context, or no type: 5)
- stakes: +2 for a word of what is important: health, law, life events, what fails, what the writer calls so
- reason: +1 for a reason
- minor: -2 for what calls itself minor or temporary

and value = level / 10. It ranks and marks what may be cleaned up; it never blocks a store.
"""

from __future__ import annotations

import re

from service.domain.kinds import Classification, Importance, ImportanceBand, MemoryType

_BASE = {
    MemoryType.DECISION: 8,
    MemoryType.PATTERN: 7,
    MemoryType.INSIGHT: 7,
    MemoryType.PREFERENCE: 6,
    MemoryType.STYLE: 6,
    MemoryType.HABIT: 5,
    MemoryType.CONTEXT: 5,
}
_NO_TYPE = 5  # default 0.5
_ACKNOWLEDGED, _TRIVIAL = 1, 2

# Lower edge of each band, inclusive.
BANDS: tuple[tuple[float, ImportanceBand], ...] = (
    (0.9, "Critical"),
    (0.7, "Important"),
    (0.5, "Standard"),
    (0.3, "Minor"),
    (0.0, "Low"),
)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


_STAKES = _words(
    r"important(?:ly)?|critical(?:ly)?|crucial(?:ly)?|vital|essential|urgent(?:ly)?|emergency|never|must|deadlines?"
    r"|due (?:date|on|by)|expires?|contract|lawsuit|legal|compliance|outages?|data loss|breach\w*|vulnerabilit\w+"
    r"|security|incident|production|allerg\w+|epilep\w+|diabet\w+|asthma\w*|pregnan\w+|diagnos\w+|surgery"
    r"|medications?|died|passed away|funeral|divorc\w+|married|wedding|engaged|born|laid off|fired|promoted"
)
_REASON = _words(
    r"because|due to|so that|in order to|since it|as it|the reason|root cause|caused by|leads? to|thanks to"
)
_MINOR = _words(
    r"minor|trivial|typos?|cosmetic|whitespace|temporary|temporarily|for testing|debug(?:ging)? output|nothing special"
)
_ACKNOWLEDGEMENT = re.compile(
    r"\W*(?:(?:ok(?:ay|ey)?|k|thanks?(?: you)?|thx|ty|cool|great|nice|good|perfect|awesome|sure|yes|yeah|yep|no"
    r"|nope|hi|hello"
    r"|hey|bye|goodbye|good (?:morning|night|evening)|see you|lol|haha+|got it|sounds good|will do|done|np|no problem"
    r"|you're welcome|so much|a lot|very much|then|there|all|alright|right|again|later)(?:\W+|$))+",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


def rate(text: str, kind: Classification | None) -> Importance:
    """Returns the level 1..10 and value 0.1..1.0 of a text by the formula above."""
    if _ACKNOWLEDGEMENT.fullmatch(text) or not _WORD.search(text):
        return Importance.of_level(_ACKNOWLEDGED)
    if NO_CONTEXT in advise(text):
        return Importance.of_level(_TRIVIAL)
    base = _BASE[kind.type] if kind else _NO_TYPE
    stakes, reason, minor = (cue.search(text) is not None for cue in (_STAKES, _REASON, _MINOR))
    return Importance.of_level(max(1, min(10, base + 2 * stakes + reason - 2 * minor)))


def band(value: float) -> ImportanceBand:
    """Returns Critical, Important, Standard, Minor or Low for a value 0..1; a lower edge belongs to its band."""
    return next(name for edge, name in BANDS if value >= edge)


TYPE_PREFIX = "Leave out the type prefix and send it as 'type': the prefix only dilutes the text."
NO_CONTEXT = "Say what, where and why: a text this short cannot be understood later."

_PREFIX = re.compile(
    r"\s*(?:[\[({<]\s*(?:decision|pattern|preference|style|habit|insight|context|memory|note|bug-?\s?fix"
    r"|fix)s?\s*[\])}>]"
    r"|(?:decision|pattern|preference|style|habit|insight|context)\s*:)",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\w[\w'’.-]*")
# A note of a change says something once it names its object: a name, a number, a path or a reason.
_CHANGE = re.compile(
    r"(?:fix|chang|updat|add|remov|delet|renam|edit|refactor|clean|tweak|adjust|mov|bump|merg|improv|modif|correct)"
    r"(?:e?d|ing|s|es|e)?|(?:fixes|did|done|made)",
    re.IGNORECASE,
)
_OBJECT = re.compile(r"\d|[/_`#@]|\w\.\w|[a-z][A-Z]|(?<=\s)[A-Z]|\b(?:because|since|due to|so that|by|after|for)\b")
_MAX_BARE_WORDS = 4


def advise(text: str) -> tuple[str, ...]:
    """Returns the hints for a text, at most one of each sort, in a fixed order; empty when there is nothing to say."""
    prefix = _PREFIX.match(text)
    body = text[prefix.end() :] if prefix else text
    hints = ((TYPE_PREFIX, prefix is not None), (NO_CONTEXT, _is_bare(body.strip())))
    return tuple(hint for hint, applies in hints if applies)


def _is_bare(text: str) -> bool:
    """One word, or a change without its object: "Fixed typo", "Changed config"."""
    words = _TOKEN.findall(text)
    if len(words) < 2:
        return text.isascii()  # a sentence of Chinese or Thai counts as one word
    return len(words) <= _MAX_BARE_WORDS and _CHANGE.fullmatch(words[0]) is not None and _OBJECT.search(text) is None
