"""The importance of a memory, by rules, and hints on how its text would make a better one; nothing is refused.

Without an LLM the level is

    level = clamp(base + stakes + specifics + hedges, 1, 10)        a bare acknowledgement: 1, a trivial edit: 2

- base: by type, inside the documented typical ranges (Context, or no type: 5)
- stakes: the weights of the matching groups in _STAKES, together at most 4
- specifics: +1 for a reason, +1 for a figure or a name, and only in texts of at least 4 words
- hedges: -1 for "maybe", -2 for what calls itself minor or temporary

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
_MAX_STAKES = 4
_MIN_WORDS = 4

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


_STAKES = (
    # what the writer calls important
    (2, _words(r"important(?:ly)?|critical(?:ly)?|crucial(?:ly)?|vital|essential|urgent(?:ly)?|emergency"
               r"|top priority")),
    (1, _words(r"must|never|required|requires|mandatory|remember|at all costs|under no circumstances|do not"
               r"|don't ever")),
    # a date that costs something when missed
    (2, _words(r"deadlines?|due (?:date|on|by)|expires?|launch date|contract|lawsuit|legal|compliance|regulat\w+"
               r"|gdpr|hipaa")),
    # what breaks, leaks or is lost
    (2, _words(r"outages?|data loss|downtime|breach\w*|vulnerabilit\w+|security|exploit\w*|incident|rollback"
               r"|production|root cause")),
    # body and life
    (3, _words(r"allerg\w+|anaphyla\w+|epilep\w+|diabet\w+|asthma\w*|celiac|coeliac|pregnan\w+|diagnos\w+|surgery"
               r"|medications?")),
    (2, _words(r"died|passed away|funeral|divorc\w+|married|wedding|engaged|born|gave birth|adopted a|laid off"
               r"|fired|promoted")),
    # who somebody is
    (1, _words(r"name is|named|birthday|lives? in|moved to|works? (?:at|for|as)|joined|vegetarian|vegan|my (?:wife"
               r"|husband|son|daughter)")),
    (1, re.compile(r"[$€£]\s?\d|\b(?:budgets?|salar(?:y|ies)|invoices?|revenue|costs?|mortgage|debts?|payments?"
                   r"|prices?)\b", re.IGNORECASE)),
)  # fmt: skip
_REASON = _words(
    r"because|due to|so that|in order to|since it|as it|the reason|root cause|caused by|leads? to|thanks to"
)
_FIGURE_OR_NAME = re.compile(r"\d|(?<=[a-z,;] )[A-Z]\w|\w[a-z][A-Z]|\w/\w")
_HEDGE = _words(r"maybe|might|perhaps|possibly|not sure|i guess|i think|kind of|someday|some day|could be")
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
    return Importance.of_level(max(1, min(10, base + _stakes(text) + _specifics(text) - _hedges(text))))


def band(value: float) -> ImportanceBand:
    """Returns Critical, Important, Standard, Minor or Low for a value 0..1; a lower edge belongs to its band."""
    return next(name for edge, name in BANDS if value >= edge)


def _stakes(text: str) -> int:
    return min(_MAX_STAKES, sum(weight for weight, cue in _STAKES if cue.search(text)))


def _specifics(text: str) -> int:
    if len(_WORD.findall(text)) < _MIN_WORDS:
        return 0
    return (_REASON.search(text) is not None) + (_FIGURE_OR_NAME.search(text) is not None)


def _hedges(text: str) -> int:
    return (_HEDGE.search(text) is not None) + 2 * (_MINOR.search(text) is not None)


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
