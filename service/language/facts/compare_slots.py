"""Compares two values of one attribute, with a rule for each kind of attribute."""

from __future__ import annotations

import re
from collections.abc import Callable

from service.language.facts import compare_jobs, places, slots, values, wordbook
from service.language.facts.phases import Phase, Side
from service.language.facts.relation import FactLink, LinkKind
from service.language.facts.values import Match


def apart(reason: str) -> FactLink:
    """Both stand."""
    return FactLink(LinkKind.APART, reason)


def match(a: Side, b: Side) -> Match:
    """Returns how the values of two facts of one attribute compare."""
    return (
        places.match(a.value, b.value) if a.slot in ("home", "origin", "birthplace") else values.match(a.value, b.value)
    )


def _single(a: Side, b: Side) -> FactLink | None:
    """One value at a time: another one is newer."""
    return _by_match(match(a, b), a, b, other=FactLink(LinkKind.NEWER, f"newer {a.slot.replace(':', ' ')}"))


def _several(a: Side, b: Side) -> FactLink | None:
    """Values that gather: another one joins them."""
    if slots.is_single(a.slot):
        return _single(a, b)
    found = match(a, b)
    if (
        found is Match.EQUAL
        and a.said.verb != b.said.verb
        and set(values.stems(a.fact.text)) - set(values.stems(b.fact.text))
    ):
        kind = LinkKind.SAME if a.slot in ("allergy", "health", "pet", "project", "goal") else LinkKind.NEWER
        return FactLink(kind, "the same, told otherwise")
    return _by_match(
        found,
        a,
        b,
        other=None if a.slot in ("habit", "goal", "project", "education", "health", "skill") else apart("one more"),
    )


def _by_match(found: Match, a: Side, b: Side, *, other: FactLink | None) -> FactLink | None:
    if found is Match.OTHER:
        return other
    if found is Match.FINER:
        return FactLink(LinkKind.FINER, "says more of the same")
    if found is Match.COARSER:
        return FactLink(LinkKind.COARSER, "the old one says more")
    return _whole(a, b)


def _whole(a: Side, b: Side) -> FactLink:
    """The same value: the sentence around it may still say more."""
    new, old = set(values.stems(a.fact.text)), set(values.stems(b.fact.text))
    return (
        FactLink(LinkKind.FINER, "adds to it")
        if old < new and len(new - old) > 0 and a.said.verb == b.said.verb
        else FactLink(LinkKind.SAME, "same value")
    )


def _diet(a: Side, b: Side) -> FactLink | None:
    new, old = (values.diet(s.value, eats=s.stands) for s in (a, b))
    if Phase.GONE in (a.phase, b.phase) or (b.phase is Phase.OVER and b.said.past):
        return apart("past")
    if not new or not old:
        same = values.match(a.value, b.value)
        if same is Match.EQUAL and a.stands != b.stands:
            return FactLink(LinkKind.ENDS, "the opposite")
        return _by_match(same, a, b, other=apart("another food")) if a.stands == b.stands else apart("another food")
    if any(new[food] != old[food] for food in new.keys() & old.keys()):
        return FactLink(LinkKind.NEWER, "another diet")
    names = values.diet_name(a.value), values.diet_name(b.value)
    if all(names) and names[0] != names[1] and a.stands and b.stands and new.keys() & old.keys():
        return FactLink(LinkKind.NEWER, "another diet")
    if new == old:
        return FactLink(LinkKind.SAME, "same diet")
    if new.keys() >= old.keys():
        return FactLink(LinkKind.FINER, "a stricter diet")
    return FactLink(LinkKind.COARSER, "part of the diet") if new.keys() <= old.keys() else apart("another food")


def likes(side: Side) -> bool:
    """Returns whether a taste is for it: liking, or no longer disliking."""
    return (side.slot == "likes") == side.stands


def _taste(a: Side, b: Side) -> FactLink | None:
    found = values.match(a.value, b.value)
    if Phase.GONE in (a.phase, b.phase):
        return (
            FactLink(LinkKind.SAME, "same value")
            if found is Match.EQUAL and a.phase is b.phase and likes(a) == likes(b)
            else apart("past")
        )
    if likes(a) != likes(b):
        ends = found is Match.EQUAL or (found is Match.COARSER and a.phase is Phase.OVER)
        return FactLink(LinkKind.ENDS, "the opposite taste") if ends else apart("another taste")
    if a.phase is Phase.OVER or b.phase is Phase.OVER:
        return FactLink(LinkKind.SAME, "same value") if found is Match.EQUAL else apart("another taste")
    return _by_match(found, a, b, other=apart("one more"))


_OVER = re.compile(r"\s+(?:over|to|rather than|instead of|more than|than)\s+", re.IGNORECASE)


def _preference(a: Side, b: Side) -> FactLink | None:
    (better, worse), (was, than) = _pair(a.value), _pair(b.value)
    top, below = values.match(better, was), values.match(worse, than) if worse and than else None
    if top is Match.EQUAL:
        if below in (Match.EQUAL, None) and bool(worse) >= bool(than):
            return _whole(a, b) if bool(worse) == bool(than) else FactLink(LinkKind.FINER, "tells over what")
        return (
            FactLink(LinkKind.COARSER, "the old one tells over what") if not worse else apart("compared with another")
        )
    if (than and values.match(better, than) is Match.EQUAL) or (worse and values.match(worse, was) is Match.EQUAL):
        return FactLink(LinkKind.NEWER, "the preference turned round")
    new, old = values.stems(better), values.stems(was)
    if (
        new
        and old
        and len(new) > 1
        and len(old) > 1
        and new[-1] == old[-1]
        and not worse
        and not than
        and new[0] != old[0]
    ):
        return FactLink(LinkKind.NEWER, "newer preference of the same kind")
    return None


def _pair(value: str) -> tuple[str, str]:
    better, *worse = _OVER.split(value, maxsplit=1)
    return better, worse[0] if worse else ""


def _kin(a: Side, b: Side) -> FactLink | None:
    if a.slot != b.slot:
        return apart("another relation")
    named = [side.value[:1].isupper() for side in (a, b)]
    if all(named):
        return _single(a, b) if slots.is_single(a.slot) else _by_match(match(a, b), a, b, other=apart("one more"))
    if any(named):
        return (
            FactLink(LinkKind.FINER, "tells the name") if named[0] else FactLink(LinkKind.COARSER, "the name is known")
        )
    return _by_match(match(a, b), a, b, other=apart("one more"))


_MORE = re.compile(r"\b(?:another|second|third|also|one more|too)\b", re.IGNORECASE)


def _pet(a: Side, b: Side) -> FactLink | None:
    kinds = [wordbook.species(side.value) for side in (a, b)]
    if kinds[0] != kinds[1] or _MORE.search(a.fact.text):
        return apart("another animal")
    names = [
        {word for word in side.value.split() if word[:1].isupper() and word.lower() not in wordbook.ANIMALS}
        for side in (a, b)
    ]
    if names[0] and names[1]:
        return _whole(a, b) if names[0] & names[1] else apart("another animal")
    if names[0]:
        return FactLink(LinkKind.FINER, "tells its name")
    if names[1]:
        return FactLink(LinkKind.COARSER, "its name is known")
    return _by_match(
        match(a, b),
        a,
        b,
        other=FactLink(LinkKind.NEWER, "newer number")
        if re.search(r"\d|two|three|four|five", a.value)
        else apart("another animal"),
    )


def _children(a: Side, b: Side) -> FactLink | None:
    """ "Two kids" becomes "three kids"; "one daughter" beside "two kids" is another count."""
    kinds = [re.sub(r"s$|ren$", "", side.value.split()[-1].lower()).replace("kid", "child") for side in (a, b)]
    return _single(a, b) if kinds[0] == kinds[1] else apart("another count")


def _education(a: Side, b: Side) -> FactLink | None:
    """Studying ends in a degree; another subject studied now ends the one before."""
    found = match(a, b)
    if a.said.verb != b.said.verb and found is not Match.OTHER:
        return FactLink(LinkKind.NEWER, "a later stage")
    studies = a.said.verb in ("study", "major", "attend") and not a.said.past
    return _by_match(
        found,
        a,
        b,
        other=FactLink(LinkKind.NEWER, "newer studies")
        if studies and a.said.verb == b.said.verb
        else apart("one more"),
    )


def _job(a: Side, b: Side) -> FactLink | None:
    gone = [
        side.phase in (Phase.GONE,)
        or (side.phase is Phase.OVER and side.said.past and side.said.verb in ("work", "be"))
        for side in (a, b)
    ]
    return compare_jobs.relate(
        a.fact.text,
        b.fact.text,
        gone=(gone[0], gone[1]),
        ahead=(a.phase is Phase.AHEAD, b.phase is Phase.AHEAD),
        ends=a.phase in (Phase.OVER, Phase.DENIED),
        over=b.phase in (Phase.OVER, Phase.DENIED),
    )


def _language(a: Side, b: Side) -> FactLink | None:
    tongues = [
        {word for word in (w.strip(",.").lower() for w in side.value.split()) if word in wordbook.LANGUAGES}
        for side in (a, b)
    ]
    if not tongues[0] & tongues[1]:
        return apart("another language")
    if tongues[0] == tongues[1]:
        stage = a.said.verb == b.said.verb and a.phase is b.phase
        return _whole(a, b) if stage else FactLink(LinkKind.NEWER, "another stage of the same language")
    return (
        FactLink(LinkKind.FINER, "more languages")
        if tongues[0] > tongues[1]
        else FactLink(LinkKind.COARSER, "known already")
    )


Rule = Callable[[Side, Side], FactLink | None]
_HANDLERS: dict[str, Rule] = {
    "diet": _diet,
    "taste": _taste,
    "preference": _preference,
    "kin": _kin,
    "pet": _pet,
    "job": _job,
    "language": _language,
    "children": _children,
    "education": _education,
}


def of_family(family: str) -> Rule:
    """Returns the rule for a family of attributes."""
    return _HANDLERS.get(family, _several)
