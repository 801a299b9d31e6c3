"""What has ended when somebody "dropped out of", "came off", "got rid of" or "left" something.

The verb says that something ended, its object says what. Read off the sentence; whether a stored memory claims that
very thing is for `compare`.
"""

from __future__ import annotations

import re

from service.language.facts import slots, values
from service.language.facts.statement import Statement

# verb -> what stands between it and its object; "" where the object follows at once
_PARTICLES: dict[str, str] = {
    "drop": r"out of|off|out",
    "come": r"off",
    "get": r"rid of|off|over|out of|kicked out of|divorced from",
    "go": r"off",
    "step": r"down as|down from|away from|back from",
    "pull": r"out of",
    "back": r"out of",
    "opt": r"out of",
    "withdraw": r"from",
    "resign": r"from|as",
    "retire": r"from",
    "unsubscribe": r"from",
    "split": r"up with|from|with",
    "break": r"up with|off|it off with",
    "part": r"ways with|with",
    "fall": r"out with",
    "lose": r"interest in|touch with",
    "close": r"down",
    "shut": r"down",
    "throw": r"out|away",
    "give": r"away|back|up on|up",
    "hand": r"in|over|back",
    "wean": r"off",
    "grow": r"out of",
    "recover": r"from",
    "quit": "",
    "stop": "",
    "leave": "",
    "cancel": "",
    "ditch": "",
    "dump": "",
    "delete": "",
    "uninstall": "",
    "deactivate": "",
    "donate": "",
    "scrap": "",
    "abandon": "",
    "sell": "",
    "discontinue": "",
    "terminate": "",
    "end": "",
    "beat": "",
    "return": "",
}
_OBJECT = re.compile(r"(?P<article>an?|some|one|two|three|another) ", re.IGNORECASE)
_BOND = re.compile(r"(?<=\w) (?:membership|subscription|contract|account)$", re.IGNORECASE)
_LEFT_FOR = re.compile(r"\s+(?:for|to join|and|because|after|when|so)\b.*$", re.IGNORECASE)
# "Left the house at eight": only what one belongs to is over when one leaves it
_MEMBER = frozenset(values.stems("member work belong study attend part volunteer date live rent train enrol join"))


def over(s: Statement) -> str:
    """Returns what a statement says to be over, "" when it says no such thing."""
    if s.negative or s.future or s.wish or not (s.past or s.perfect or s.ended or s.progressive):
        return ""
    particles = _PARTICLES.get(s.verb)
    if particles is None:
        return ""
    found = re.match(rf"(?:{particles})\s+(?P<what>.+)" if particles else r"(?P<what>.+)", s.rest, re.IGNORECASE)
    if found is None or (not particles and _OBJECT.match(found["what"])):
        return ""
    return _BOND.sub("", slots.trimmed("", _LEFT_FOR.sub("", found["what"])))


def leaves(s: Statement, old_words: frozenset[str]) -> bool:
    """Returns whether a statement's verb may end what the old one says, whose words (stems) are given."""
    return s.verb not in ("leave", "return") or bool(old_words & _MEMBER)
