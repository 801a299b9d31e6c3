"""Hints on how a text would make a better memory; nothing is refused."""

from __future__ import annotations

import re

TYPE_PREFIX = "Leave out the type prefix and send it as 'type': the prefix only dilutes the text."
NO_CONTEXT = "Say what, where and why: a text this short cannot be understood later."

_PREFIX = re.compile(
    r"\s*(?:[\[({<]\s*(?:decision|pattern|preference|style|habit|insight|context|memory|note|bug-?\s?fix"
    r"|fix)s?\s*[\])}>]"
    r"|(?:decision|pattern|preference|style|habit|insight|context)\s*:)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w[\w'’.-]*")
# A note of a change says something once it names its object: a name, a number, a path or a reason.
_CHANGE = re.compile(
    r"(?:fix|chang|updat|add|remov|delet|renam|edit|refactor|clean|tweak|adjust|mov|bump|merg|improv|modif|correct)"
    r"(?:e?d|ing|s|es|e)?|(?:fixes|did|done|made)",
    re.IGNORECASE,
)
_SPECIFIC = re.compile(r"\d|[/_`#@]|\w\.\w|[a-z][A-Z]|(?<=\s)[A-Z]|\b(?:because|since|due to|so that|by|after|for)\b")
_MAX_BARE_WORDS = 4


def warnings(text: str) -> tuple[str, ...]:
    """Returns the hints for a text, at most one of each sort, in a fixed order; empty when there is nothing to say."""
    prefix = _PREFIX.match(text)
    body = text[prefix.end() :] if prefix else text
    hints = ((TYPE_PREFIX, prefix is not None), (NO_CONTEXT, _is_bare(body.strip())))
    return tuple(hint for hint, applies in hints if applies)


def _is_bare(text: str) -> bool:
    """One word, or a change without its object: "Fixed typo", "Changed config"."""
    words = _WORD.findall(text)
    if len(words) < 2:
        return text.isascii()  # a sentence of Chinese or Thai counts as one word
    return len(words) <= _MAX_BARE_WORDS and _CHANGE.fullmatch(words[0]) is not None and _SPECIFIC.search(text) is None
