"""News about a thing that changes another sentence about it.

"The appointment was moved to Friday", "the landlord raised my rent to 1100", "got a new phone", "runs twice a week"
beside "runs every morning": the sentences share few words, and what changed is the value.
"""

from __future__ import annotations

import re

from service.language import wordlists
from service.language.facts import slots, values, wordbook
from service.language.facts.fact import USER
from service.language.facts.phases import Phase, Side
from service.language.facts.relation import FactLink, LinkKind
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
    r"\bon \w+days(?: and \w+days)*\b|\b(?:every|each) (?:other |second |single )?(?:\w+day|day|morning|evening"
    r"|night|week|weekend|month|year)s?\b"
    r"|\b(?:once|twice|(?:\d+|two|three|four|five|six|seven|several|a few) times|(?:\d+|two|three|four|five|six|seven)"
    r" (?:days|nights|mornings|evenings)) (?:an?|per|every) (?:day|week|month|year)\b|\b(?:daily|weekly|monthly)\b",
    re.IGNORECASE,
)


def changed(new: Side, old: Side) -> FactLink | None:
    """Returns NEWER where the new sentence changes what the old one says, None where it is no such news."""
    if new.phase is Phase.DENIED or not (old.stands or _MOVED.search(old.fact.text)):
        return None
    if _moved_out(new, old) or _instead(new, old) or _healed(new, old):
        return FactLink(LinkKind.NEWER, "tells what is so instead")
    if _rescheduled(new, old) or _replaced(new, old) or _retongued(new, old):
        return FactLink(LinkKind.NEWER, "tells how it changed")
    graded = _regraded(new, old)
    return FactLink(LinkKind.NEWER, "another figure", graded) if graded else None


_OUT = re.compile(r"(?:out|away|in with|into (?:their|an?) (?:own|new) (?:flat|place|apartment|house|home))\b")


def _moved_out(new: Side, old: Side) -> bool:
    """Whether who moved out, or whom they lived with did, no longer lives with them."""
    lived = re.match(r"(?:together )?with (?P<whom>.+)", old.said.rest) if old.said.verb == "live" else None
    if lived is None or old.fact.subject != USER or new.said.verb != "move" or not _OUT.match(new.said.rest):
        return False
    whom = new.said.subject.removeprefix(f"{USER}'s ")
    return new.fact.subject == USER or set(values.stems(whom)) <= set(values.stems(lived["whom"]))


_NOW = re.compile(r"\s+(?:now|nowadays|these days|instead|from now on)$", re.IGNORECASE)
_ONE_AT_A_TIME = wordlists.words("support use drive ride wear teach manage lead attend train rent coach")
_CONSUMED = wordlists.words("eat drink use wear read watch drive ride buy")


def _instead(new: Side, old: Side) -> bool:
    """Whether "supports Chelsea now", "only drinks tea" leave no room for what the same verb had before."""
    a, b = (set(values.stems(_OFTEN.sub("", _NOW.sub("", side.said.rest)))) for side in (new, old))
    if new.said.verb != old.said.verb or new.fact.subject != old.fact.subject or not (a and b and new.stands):
        return False
    only = re.search(r"\b(?:only|just)\b", new.fact.text) and new.said.verb in _CONSUMED
    now = _NOW.search(new.said.rest)
    if now and a == b:  # the same, on another day
        return _OFTEN.search(new.fact.text) is not None and _OFTEN.search(old.fact.text) is not None
    return not a & b and bool(only or (now and new.said.verb in _ONE_AT_A_TIME))


def _healed(new: Side, old: Side) -> bool:
    """Whether a part of the body is well again: "User's leg has healed" beside "has a broken leg"."""
    part = new.said.subject.removeprefix(f"{USER}'s ")
    return new.said.verb in ("heal", "recover") and set(values.stems(part)) <= set(values.stems(old.said.rest))


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
