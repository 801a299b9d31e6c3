"""Cuts a list such as "tea, coffee and rain" into one fact each.

Three, where each part stands by itself as a thing liked, spoken, used. One, where parts belong together ("fish and
chips"), share a word ("Thai and Indian food"), or something behind the last applies to all ("... in the morning").
"""

from __future__ import annotations

import re
from collections.abc import Callable

from service.language import wordlists
from service.language.facts.wordbook import NATIONALITY

MAX_ITEMS = 12
SPLIT_SLOTS = frozenset({"likes", "dislikes", "language", "allergy", "tool", "skill", "fear", "health", "food"})
_TOGETHER = re.compile(
    r"\b(?:rock (?:and|&|'?n'?) roll|mac(?:aroni)? and cheese|fish and chips|salt and (?:pepper|vinegar)|drum"
    r" and bass|black and white|arts and crafts|bread and butter|ham and cheese|peanut butter and jelly"
    r"|bed and breakfast|track and field|food and wine|wine and dine|rhythm and blues|trial and error|peace and"
    r" quiet|bacon and eggs|rice and beans|country and western|cookies and cream|gin and tonic|pros and cons"
    r"|research and development|dungeons and dragons|mind and body|odds and ends|up and running|back and forth"
    r"|more and more|both|between|each other|as well as)\b",
    re.IGNORECASE,
)
_CUT = re.compile(r"\s*,\s*(?:and|or|&)?\s*|\s+(?:and|or|&)\s+", re.IGNORECASE)
_TAIL = re.compile(
    r"\b(?:in|on|at|with|for|during|after|before|from|when|while|because|since|but|that|which|who|if|than|over"
    r"|every|each|as|about|to|by|of|so|mostly|especially|together|too much|a lot|very much|the most|more|equally"
    r"|outside)\b",
    re.IGNORECASE,
)
_HALVES = wordlists.words("""
    spicy sweet sour salty hot cold fresh raw fried baked grilled red white black green blue yellow dark light small
    large big short long old new modern classic classical local live indie electronic acoustic natural organic
    strong weak rude loud crowded early late front back left right public private male female high low soft hard wet
    dry romantic historical functional relational distributed machine open science social
""")


def items(slot: str, value: str) -> list[str]:
    """Returns the parts of a value that are facts by themselves, the whole value alone when it is no such list."""
    if slot not in SPLIT_SLOTS or _TOGETHER.search(value):
        return [value]
    parts = [
        re.sub(r"^(?:and |or |also )*(?:a (?:little|bit)(?: bit)?(?: of)?|some|basic) ", "", part)
        if slot in ("language", "tool", "skill")
        else part
        for part in _CUT.split(value)
    ]
    parts = [re.sub(r"^(?:and|or|also|both|either|neither|even) ", "", part.strip(" .")) for part in parts]
    if not 2 <= len(parts) <= MAX_ITEMS or not all(map(_stands_alone, parts)) or _shares_a_word(parts):
        return [value]
    return parts


_DETERMINED = re.compile(r"(?:an?|the|their|one|two|three|four|\d+|some) ")


def without(text: str, gone: Callable[[str], bool]) -> str | None:
    """Returns a sentence without the one item of its list that `gone` names, None where it names none or all."""
    cut = _CUT.split(text)
    if len(cut) < 2:
        return None
    left = [part for part in cut[1:] if not gone(part)]
    head, _, first = cut[0].rpartition(" ")
    if left and _DETERMINED.match(left[0]):
        head = re.sub(r" (?:an?|the|their|one|two|three|four|some)$", "", head)
    if len(left) == len(cut) - 1 and head and gone(first):
        return f"{head} {_joined(left)}"
    return f"{head} {_joined([first, *left])}" if len(left) == len(cut) - 2 else None


def _joined(parts: list[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def _stands_alone(part: str) -> bool:
    return (
        0 < len(part.split()) <= 4
        and not _TAIL.search(part)
        and not re.match(r"(?:they|i|user|it|he|she|not|don't|doesn't|is|are|has|have)\b", part, re.IGNORECASE)
    )


def _shares_a_word(parts: list[str]) -> bool:
    """Whether a part lacks the noun or verb that another brings: "spicy and sour soup", "playing chess and go"."""
    for part in parts[:-1]:
        last = part.split()[-1]
        if last.lower() in _HALVES or (NATIONALITY.match(last) and len(parts[-1].split()) > 1):
            return True
    gerunds = [part.split()[0].endswith("ing") for part in parts]
    bound = [len(part.split()) > 1 for part in parts]
    return any(g and b and not g2 for (g, b), g2 in zip(zip(gerunds, bound, strict=True), gerunds[1:], strict=False))
