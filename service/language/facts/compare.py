"""Compares a new fact with an older one: the same, finer, newer, or its end.

Attribute by attribute, for two facts read from text. None means that these rules have no opinion and the words
alone must decide; APART that both stand side by side.
"""

from __future__ import annotations

import re
from dataclasses import replace

from service.language.facts import changes, compare_slots, endings, lists, slots, values, verbs, wordbook
from service.language.facts.compare_slots import apart
from service.language.facts.fact import USER, StatedFact
from service.language.facts.phases import Phase, Side, side
from service.language.facts.relation import FactLink, LinkKind
from service.language.facts.values import Match


def relate(new: StatedFact, old: StatedFact) -> FactLink | None:
    """Returns what `new`, the later one, is to `old`; None where only the words can tell.

    What ends one item of a list leaves the others: "collects maps and pens" without the pens.
    """
    found = _related(new, old)
    if found is None or found.kind is not LinkKind.ENDS or found.text:
        return found
    denied = set(values.stems(new.text))
    left = lists.without(old.text, lambda part: _names(part, denied))
    return replace(found, text=left) if left else found


def _names(part: str, denied: set[str]) -> bool:
    words = set(values.stems(part))
    return bool(words) and words <= denied


def _related(new: StatedFact, old: StatedFact) -> FactLink | None:
    if _bare(new.text) == _bare(old.text):
        return FactLink(LinkKind.SAME, "same text")
    a, b = side(new), side(old)
    change = changes.changed(a, b)
    if change:
        return change
    if not _one_subject(a, b):
        return _of_companion(a, b) or FactLink(LinkKind.APART, "another subject")
    found = _changed_over(a, b) or _fulfilled(a, b) or _left(a, b) or _same_partner(a, b)
    if not found and changes.another_pace(a, b):
        return FactLink(LinkKind.NEWER, "done at another pace")
    if found:
        return found
    if a.slot and _family(a.slot) == _family(b.slot):
        return _phases(a, b) or compare_slots.of_family(_family(a.slot))(a, b)
    return (
        _without(a, b)
        or _ended(a, b)
        or _taken_up(a, b)
        or _crossed(a, b)
        or (FactLink(LinkKind.APART, "another attribute") if a.slot and b.slot else None)
    )


def _bare(text: str) -> str:
    return " ".join(re.findall(r"[\w'+#-]+", text.casefold()))


def _one_subject(a: Side, b: Side) -> bool:
    first, second = (
        _relative(
            re.sub(r"\b(?:the|older|younger|elder|little|big|new|old)\b ?", "", s.fact.subject.casefold()).strip()
        )
        for s in (a, b)
    )
    return first == second or (
        first != USER
        and second != USER
        and (first.startswith(f"{second} ") or second.startswith(f"{first} ") or _same_name(first, second))
    )


def _relative(subject: str) -> str:
    """The subject with its relative named in one way: "user's mum" is "user's mother"."""
    owner, _, last = subject.rpartition(" ")
    return f"{owner} {wordbook.kin(last)}" if owner and last in wordbook.KIN else subject


def _same_name(a: str, b: str) -> bool:
    """Whether one is the other's name: "user's daughter ana", "ana"."""
    return any(whole.startswith("user's ") and whole.endswith(f" {name}") for whole, name in ((a, b), (b, a)))


def _family(slot: str) -> str:
    """Slots that are compared with each other share a family."""
    return {"likes": "taste", "dislikes": "taste", "food": "diet", "relationship": "kin"}.get(slot.split(":")[0], slot)


def _phases(a: Side, b: Side) -> FactLink | None:
    """What follows from time alone, for one attribute."""
    if a.slot == "job" or _family(a.slot) in ("diet", "taste"):
        return None
    same = compare_slots.match(a, b)
    if a.phase in (Phase.OVER, Phase.DENIED):
        return _denying(a, b, same)
    agree = same is not Match.OTHER
    if a.phase is Phase.GONE:
        if agree and b.phase is Phase.NOW and a.slot in ("home", "vehicle", "tool", "skill", "pet"):
            return FactLink(LinkKind.ENDS, "told as past")
        return None if agree and b.phase is Phase.GONE else apart("past")
    if b.phase is Phase.GONE or (b.said.ended and b.said.past):
        return apart("the old one is past")
    if b.phase in (Phase.OVER, Phase.DENIED):
        return FactLink(LinkKind.FULFILS, "so again, or now") if agree else apart("the old one is over")
    return _planned(a, b, same)


def _denying(a: Side, b: Side, same: Match) -> FactLink | None:
    """A denial ends what claimed the same, or more of the same."""
    if b.stands:
        ends = same in (Match.EQUAL, Match.COARSER) or (same is Match.FINER and a.slot == "goal")
        return FactLink(LinkKind.ENDS, "no longer so") if ends else apart("of another value")
    if same is Match.EQUAL and a.phase is b.phase:
        return FactLink(LinkKind.SAME, "denied before")
    return apart("of another value") if same is Match.OTHER else None


def _planned(a: Side, b: Side, same: Match) -> FactLink | None:
    """What is still to come leaves the present as it is, until it is told as present."""
    if a.phase is Phase.AHEAD and b.phase is Phase.NOW:
        known = same is Match.EQUAL and a.slot != "home"
        return FactLink(LinkKind.SAME, "so already") if known else apart("still to come")
    if b.phase is Phase.AHEAD and a.phase is Phase.NOW:
        come = same is not Match.OTHER
        return FactLink(LinkKind.FULFILS, "the plan came true") if come else apart("the old one is still to come")
    return None


_FROM = re.compile(r"\bfrom (?P<old>.+?)(?: (?:over )?to (?P<new>.+))?$|^(?P<old2>.+?) (?:with|for|by) (?P<new2>.+)$")


def _changed_over(a: Side, b: Side) -> FactLink | None:
    """ "Switched from Vim to Emacs" ends "uses Vim", "replaced the Civic with a Tesla" ends "drives a Civic"."""
    if (
        not b.stands
        or a.said.negative
        or a.said.verb
        not in ("switch", "migrate", "replace", "change", "trade", "swap", "move", "upgrade", "sell", "convert")
    ):
        return None
    found = _FROM.search(a.said.rest)
    gone = a.said.rest if a.said.verb == "sell" else (found["old"] or found["old2"] or "") if found else ""
    words = set(values.stems(gone))
    if not words and a.said.verb == "switch" and (a.slot == b.slot or {a.slot, b.slot} == {"tool", "vehicle"}):
        new, old = values.stems(a.value), values.stems(b.value)
        if new and old and new[-1] == old[-1]:
            return FactLink(LinkKind.NEWER, "changed over to another")
    if not words or not words <= set(values.stems(b.value or b.said.rest)):
        return None
    if a.said.verb == "move" and b.slot not in ("home", "tool", "job"):
        return None
    return FactLink(LinkKind.NEWER, "changed over from it", _with_the_new(a, b, gone, words))


def _with_the_new(a: Side, b: Side, gone: str, words: set[str]) -> str | None:
    """The old sentence with the new thing in it, where it says more than what was changed: "Rails on AWS"."""
    found = _FROM.search(a.said.rest)
    new = (found["new"] or found["new2"]) if found else None
    if not new or set(values.stems(b.value)) <= words or b.fact.text.count(gone) != 1:
        return None
    return b.fact.text.replace(gone, slots.trimmed("", new))


_DONE = frozenset({"goal", "project"})
_ANY_ONE = frozenset(values.stems("trip new used good nice cheap better another second-hand first"))
_TRAVEL = frozenset(values.stems("visit go travel fly see trip"))
_DROPPED = re.compile(
    r"\b(?:cancel\w*|call(?:s|ed)? off|abandon\w*|postpon\w*|decided (?:not to|against)|gave up on|drop(?:s|ped)"
    r"|scrap\w*|complet\w*|finish\w*|achiev\w*|reach\w*)\b",
    re.IGNORECASE,
)


def _fulfilled(a: Side, b: Side) -> FactLink | None:
    """A goal that was reached or dropped: "ran the marathon" ends "wants to run a marathon"."""
    if b.slot not in _DONE or not b.stands or (a.slot in _DONE and not (a.said.past or a.said.perfect)):
        return None
    aim = set(values.stems(re.split(r", | for | with ", b.value)[0])) - _ANY_ONE
    told = set(values.stems(f"{a.said.verb} {a.said.rest}"))
    back = re.match(r"(?:finally |just |now )?(?:back|home) from (.+)", a.said.rest) if a.said.verb == "be" else None
    if back and b.said.holds and aim - _TRAVEL and aim - _TRAVEL <= set(values.stems(back.group(1))):
        return FactLink(LinkKind.NEWER, "the trip was made")
    if not aim or not (a.said.past or a.said.perfect or (a.said.progressive and not a.said.future)):
        return None
    if aim <= told or (_DROPPED.search(a.fact.text) and len(aim & told) * 2 >= len(aim)):
        return FactLink(LinkKind.NEWER, "the aim was reached or dropped")
    return None


def _left(a: Side, b: Side) -> FactLink | None:
    """ "Dropped out of their PhD" ends "is doing a PhD", "left the Labour party" the membership in it."""
    over = set(values.stems(endings.over(a.said)))
    was = frozenset(values.stems(f"{b.said.verb} {b.said.rest}"))
    if not over or not b.stands or b.said.verb in _PARTICIPATING or not over <= was:
        return None
    return FactLink(LinkKind.ENDS, "left or given up") if endings.leaves(a.said, was) else None


_PARTNERS = frozenset(f"relationship:{kin}" for kin in wordbook.SPOUSES)


def _same_partner(a: Side, b: Side) -> FactLink | None:
    """ "Wife Mina" after "girlfriend Mina"."""
    if {a.slot, b.slot} <= _PARTNERS and a.slot != b.slot and a.stands and b.stands and a.value == b.value:
        return FactLink(LinkKind.NEWER, "the same partner")
    return None


_NONE = re.compile(r"(?:no|any|an?) ", re.IGNORECASE)


def _without(a: Side, b: Side) -> FactLink | None:
    """ "Has no car" says what "doesn't own a car" does, and ends "has a car"."""
    if {a.said.verb, b.said.verb} - {"have", "own"}:
        return None
    none = [side.said.negative or side.said.rest.startswith("no ") for side in (a, b)]
    things = [values.stems(_NONE.sub("", side.said.rest, count=1)) for side in (a, b)]
    if not none[0] or not things[0] or things[0] != things[1]:
        return None
    return FactLink(LinkKind.SAME, "denied before") if none[1] else FactLink(LinkKind.ENDS, "no longer so")


_PARTICIPATING = frozenset({"visit", "want", "plan", "like", "love", "hate"})


def _agents(text: str) -> set[str]:
    """What a doer does: "a smoker" smokes."""
    doers = (word.strip(",.").lower() for word in text.split())
    return {
        stem
        for word in doers
        if word.endswith("er")
        for verb in (word[:-1], word[:-2], word[:-3])
        if (known := verbs.form(verb)) and known.shape == "base"
        for stem in values.stems(verb)
    }


def _ended(a: Side, b: Side) -> FactLink | None:
    """ "Quit smoking" ends "smokes a pack a day"; "no longer runs" ends "runs every morning"."""
    if a.phase not in (Phase.OVER, Phase.DENIED) or not b.stands or not a.said.verb:
        return None
    about, was = (
        set(values.stems(a.said.rest)),
        set(values.stems(f"{b.said.verb} {b.said.rest}")) | _agents(b.said.rest),
    )
    if a.said.verb == "quit" and about and about <= was:
        return FactLink(LinkKind.ENDS, "given up")
    if a.phase is Phase.OVER and set(values.stems(a.said.verb)) & _agents(b.said.rest) and about <= was:
        return FactLink(LinkKind.ENDS, "no longer so")
    same_verb = a.said.verb == b.said.verb and a.said.verb not in ("be", "have", "do", "get", "go", "make", "take")
    if same_verb and about <= was and (about or a.phase is Phase.OVER):
        return FactLink(LinkKind.ENDS, "no longer so")
    if (
        a.said.verb in ("be", "have", "do", "go", "take", "get")
        and a.said.verb == b.said.verb
        and about
        and about <= was
    ):
        return FactLink(LinkKind.ENDS, "no longer so")
    return None


def _taken_up(a: Side, b: Side) -> FactLink | None:
    """ "Started smoking again" beside "quit smoking"; what one "used to" do is history and stays."""
    if a.phase is not Phase.NOW or b.phase not in (Phase.OVER, Phase.DENIED) or (b.said.ended and b.said.past):
        return None
    same = a.said.verb == b.said.verb and a.said.verb not in ("be", "have", "do")
    if same and set(values.stems(b.said.rest)) <= set(values.stems(a.said.rest)):
        return FactLink(LinkKind.FULFILS, "so again")
    return None


def _crossed(a: Side, b: Side) -> FactLink | None:
    """Attributes that bear on each other: a taste and a food, a habit and a taste."""
    families = {_family(a.slot), _family(b.slot)}
    if families == {"diet", "taste"} and a.slot != b.slot:
        eats, taste = (a, b) if _family(a.slot) == "diet" else (b, a)
        same = values.match(eats.value, taste.value) is Match.EQUAL
        return (
            FactLink(LinkKind.NEWER, "the opposite")
            if same and a.phase is Phase.OVER and eats.stands != compare_slots.likes(taste)
            else None
        )
    if families == {"marital", "kin"} and a.slot == "marital" and a.value == "divorced":
        return FactLink(LinkKind.APART, "a relation that was")
    graduated = a.slot == "education" and a.said.verb == "graduate"
    if graduated and b.slot == "job" and "student" in b.value and b.phase is Phase.NOW:
        return FactLink(LinkKind.NEWER, "studies are over")
    if a.slot == "children" and b.slot.startswith("relationship:"):
        return apart("another attribute")
    return None


_GONE = re.compile(r"\b(?:died|passed away|passed|was put down|ran away|gave (?:away|up)|rehomed)\b", re.IGNORECASE)


def _of_companion(a: Side, b: Side) -> FactLink | None:
    """ "User's dog Rex died" ends "User has a dog named Rex"; "User's dog is named Rex" names the dog they have."""
    kind = wordbook.animal(a.fact.subject) if a.fact.subject.startswith("user's ") else None
    if kind and b.slot == "pet" and wordbook.animal(b.value) == kind and b.stands:
        named = {word.casefold() for word in b.value.split() if word[:1].isupper()}
        if _GONE.search(a.fact.text) and (
            not named or named & set(a.fact.text.casefold().split()) or len(a.fact.subject.split()) == 2
        ):
            return FactLink(LinkKind.NEWER, "the animal is gone")
    return None
