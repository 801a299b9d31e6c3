"""Reads what has one value at a time for each person: home ("I live in Oslo") and employer ("I work for Acme")."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LEAD = re.compile(
    r"(?i)^\W*(?:(?:and|but|so|ok|okay|well|oh|actually|update|news|by the way|btw|fyi|now|also|yes|no)\b[\s,:.!-]*)*"
)
_SUBJECT = r"(?:(?P<subject>(?i:i|we|the user|user)|[^\W\d_a-z][\w\u2019'-]+(?: [^\W\d_a-z][\w\u2019'-]+)?)\b)?"
_AUXILIARY = r"(?:['\u2019](?:ve|m|re|s)| have| has| am| is| are)?"
_NOW = r"(?: ?\b(?i:now|currently|still|just|recently|finally))?"
_PLACE = r"(?P<value>[^\W\d_a-z][\w\u00c0-\u024f.'\u2019-]*(?:[ -][^\W\d_a-z][\w\u00c0-\u024f.'\u2019-]*){0,3})"
_SLOTS: Mapping[str, re.Pattern[str]] = {
    slot: re.compile(rf"{_SUBJECT}{_AUXILIARY}{_NOW} ?{verb} {_PLACE}[^\n]{{0,120}}$")
    for slot, verb in {
        "home": r"(?:(?i:lives?|resides?|living|based) in"
        r"|(?i:moved|relocated) (?:from [^,.]{2,40}? )?(?:back )?to)",
        "employer": r"(?:(?i:works?|working) (?:at|for)|(?i:joined))",
    }.items()
}


def fillings(sentence: str, speaker: str | None) -> dict[tuple[str, str], str]:
    """The values of the slots that a sentence fills, by slot and subject, casefolded. `speaker`: who says it, None for
    nobody in particular."""
    bare = _LEAD.sub("", sentence).strip()
    found = {}
    for slot, pattern in _SLOTS.items():
        if match := pattern.match(bare):
            subject = (match["subject"] or "i").casefold()
            if subject in {"i", "we", "user", "the user"}:
                subject = (speaker or "user").casefold()
            found[slot, subject] = match["value"].rstrip(".").casefold()
    return found
