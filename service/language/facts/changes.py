"""Which news about one thing changes another sentence about it?

"The appointment was moved to Friday", "the landlord raised my rent to 1100", "got a new phone", "runs twice a week"
beside "runs every morning": the sentences share few words, and what changed is the value.
"""

from __future__ import annotations

import re

from service.language.facts import slots, values, wordbook
from service.language.facts.fact import USER
from service.language.facts.phases import Phase, Side
from service.language.facts.relation import Kind, Relation
from service.language.quantities import units

_MOVED = re.compile(
    r"\b(?:moved|rescheduled|postponed|pushed|brought forward|shifted|changed|delayed|cancell?ed|called off)\b", re.I
)
_REGRADED = re.compile(
    r"\b(?:raised?|raises|increased?|upped|lowered|reduced|cut|dropped|bumped|doubled|changed|went up|went down|gone up"
    r"|gone down|rose|fell|set)\b(?P<what>[\w' ]{0,40}?)\b(?:to|at)\b (?P<to>[^,;]*\d.*)$",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*(?![\w.]*\d)")
_TONGUE = re.compile(
    r"\bthe assistant to (?:always )?(?:answer|reply|respond|speak|write|talk|use)\b.*?"
    rf"\b(?P<tongue>{'|'.join(sorted(wordbook.LANGUAGES))})\b",
    re.IGNORECASE,
)
_NEW = re.compile(r"(?:an?|their|the) new (?P<noun>[\w-]+(?: [\w-]+)?)\b")
_OFTEN = re.compile(
    r"\b(?:every|each) (?:other |second |single )?(?:\w+day|day|morning|evening|night|week|weekend|month|year)s?\b"
    r"|\b(?:once|twice|(?:\d+|two|three|four|five|six|seven|several|a few) times|(?:\d+|two|three|four|five|six|seven)"
    r" (?:days|nights|mornings|evenings)) (?:an?|per|every) (?:day|week|month|year)\b|\b(?:daily|weekly|monthly)\b",
    re.IGNORECASE,
)


def changed(new: Side, old: Side) -> Relation | None:
    """Returns NEWER where the new sentence changes what the old one says, None where it is no such news."""
    if new.phase is Phase.DENIED or not (old.stands or _MOVED.search(old.fact.text)):
        return None
    if _rescheduled(new, old) or _replaced(new, old) or _retongued(new, old):
        return Relation(Kind.NEWER, "tells how it changed")
    graded = _regraded(new, old)
    return Relation(Kind.NEWER, "another figure", graded) if graded else None


def _rescheduled(new: Side, old: Side) -> bool:
    subject = new.said.subject.casefold()
    if subject.rpartition(" ")[2] in wordbook.KIN or new.said.subject[:1].isupper():
        return False  # people move house
    return subject == old.said.subject.casefold() != USER and _MOVED.search(new.fact.text) is not None


def _regraded(new: Side, old: Side) -> str | None:
    """The old sentence with its figure as it is now, for the same thing in the same unit: "pays 1100 for the flat"."""
    found, figures = _REGRADED.search(new.fact.text), _FIGURE.findall(old.fact.text)
    if found is None or len(figures) != 1 or not (now := _FIGURE.search(found["to"])):
        return None
    subject = new.fact.subject if not found["what"].strip() else found["what"]
    what = set(values.stems(re.sub(r"\b(?:user's|their|the)\b", "", subject, flags=re.IGNORECASE)))
    here, there = set(units(found["to"])), set(units(old.fact.text))
    if not what or not what <= set(values.stems(old.fact.text)) or (here and there and not here & there):
        return None
    return _FIGURE.sub(lambda _figure: now.group(), old.fact.text)


def _replaced(new: Side, old: Side) -> bool:
    """Whether "got a new phone" tells of the successor of "User's phone is ..."."""
    if new.fact.subject != USER or new.said.verb not in ("get", "buy", "have") or old.said.verb != "be":
        return False
    found = _NEW.match(slots.trimmed("", new.said.rest))
    owner, _, noun = old.said.subject.rpartition("'s ")
    return found is not None and owner == USER and found["noun"].lower() == noun


def _retongued(new: Side, old: Side) -> bool:
    """Whether the answers are wanted in another language than before."""
    a, b = (_TONGUE.search(side.fact.text) for side in (new, old))
    return a is not None and b is not None and a["tongue"].lower() != b["tongue"].lower()


def another_pace(new: Side, old: Side) -> bool:
    """Returns whether both tell how often the same is done, and not equally often."""
    often = [_OFTEN.search(side.fact.text) for side in (new, old)]
    if not all(often) or new.said.verb != old.said.verb or not (new.stands and old.stands):
        return False
    a, b = (set(values.stems(_OFTEN.sub("", side.said.rest))) for side in (new, old))
    paces = [values.stems(found.group()) for found in often if found]
    return paces[0] != paces[1] and (a <= b or b <= a)
