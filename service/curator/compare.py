"""How a newer statement bears on an older one: the same, more of it, its end, its opposite, or nothing.

Pure; both were said about one scope, and the order of the two is known. What no rule is sure of stays beside the other:
two rows that say the same cost a line of context, a wrong replacement costs a memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from service.domain.decision import Reason
from service.language import claims, contrast, opposites
from service.language.claims import Claim, SlotValue
from service.language.lexemes import lexemes

SAME_TOPIC = 0.5  # shared content words over all of them: half, as in "morning calls" / "morning meetings"
SAME_FRAME = 0.75  # the same statement but for a figure, a date or a negation
ON_TOPIC = 0.48
"""Similarity from which a change told in other words is about the older statement of the same subject. The nearest
memory of 12 such cases lay at 0.36 to 0.79, those about something else at 0.13 to 0.43."""
HINTED = 0.2
"""What a verb of change adds where it is likely to be about the older statement's slot ("joined": the employer)."""
ONE_TEMPLATE = 0.6
"""Share of common words from which two texts are of one template, and a word of change in both says nothing."""
CHANGED_FROM = 0.6
"""Similarity from which a change told in other words ends a state about another subject: of 40 such changes 27 lay
above, of 80 memories beside them that stay four."""
MOSTLY_OTHER = 8
"""Words for each shared one from which on a text tells of so much else that a change in it is about something else."""
UNRELATED = 0.1
"""Similarity below which two texts that share no slot have nothing to do with each other, unless one denies the
other in its words."""
PERHAPS = 0.42
NEAR, NEAR_MORE = 0.70, 0.60
"""Similarities below which two texts are never the same, and one never more of the other."""
NEAR_TEXT = 0.9
"""Similarity from which one text with a word or two more is the same told better."""

COMPARABLE_CHARS = 4_000
"""Longer texts are only compared as a whole: word by word would be slow and worth little."""


class LinkKind(StrEnum):
    """SAME: nothing new. LESS: the older says this and more. MORE: the newer says all of the older and more. ENDS: the
    older is no longer so. UNSURE: it may be no longer so."""

    SAME = "same"
    LESS = "less"
    MORE = "more"
    ENDS = "ends"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class FactLink:
    """How the newer statement bears on the older one, and why. `text`: what both say together, where that is not simply
    the newer."""

    kind: LinkKind
    reason: Reason
    by_slot: bool = False
    text: str | None = None


_SAME_TEXT = FactLink(LinkKind.SAME, Reason.SAME_TEXT)
_SAME = FactLink(LinkKind.SAME, Reason.SAME_WORDS)
_LESS = FactLink(LinkKind.LESS, Reason.KNOWN)
_MORE = FactLink(LinkKind.MORE, Reason.SAYS_MORE)
_UNSURE = FactLink(LinkKind.UNSURE, Reason.UNSURE)
_CHANGED = FactLink(LinkKind.ENDS, Reason.CHANGE)
_CORRECTED = FactLink(LinkKind.ENDS, Reason.CORRECTION)
_OPPOSITE = FactLink(LinkKind.ENDS, Reason.OPPOSITE)
_NEW_VALUE = FactLink(LinkKind.ENDS, Reason.NEW_VALUE, by_slot=True)
_CHANGED_VALUE = FactLink(LinkKind.ENDS, Reason.CHANGE, by_slot=True)


def relate(newer: str, older: str, similarity: float, *, correction: bool = False) -> FactLink | None:
    """Returns how `newer` bears on `older`, None where it does not. `correction`: it was told as one.

    What a fact quotes of what was said before tells nothing new: only its own words are compared, unless both quote
    the same. What is no sentence without the quotation ("By the 20th") then repeats nothing.
    """
    if _bare(newer) == _bare(older) and (_bare(newer) or newer == older):
        return _SAME_TEXT
    if max(len(newer), len(older)) > COMPARABLE_CHARS:
        return None
    alike = claims.context(newer) == claims.context(older)
    new, old = (claims.read(each if alike else claims.own_words(each)) for each in (newer, older))
    if not new.words or not old.words or new.asks != old.asks or claims.apart(new.anchors, old.anchors):
        return None
    if _of_another_person(new, old):
        return None
    same_subject = _same_subject(new, old)
    if similarity >= NEAR_MORE and (alike or (new.clause.verb and old.clause.verb)):
        same = same_subject and (
            _repeated(new, old) or _contained(new, old, similarity) or _gathered(new, old, similarity)
        )
        if same and (similarity >= NEAR or same.kind is LinkKind.MORE):
            return same
        if _reworded(new, old, similarity):
            return _MORE
    if correction and same_subject and _overlap(new, old) >= SAME_FRAME:
        return _CORRECTED
    if _another_instance(new, old) or (new.skips_once and _RECURS.search(old.text)):
        return None
    if new.tentative and not old.tentative:
        return None
    if new.passing and not old.dated:
        return None
    by_slot = _by_slots(new, old, same_subject=same_subject)
    if by_slot is not None:
        return by_slot if by_slot is not _NOT else None
    if similarity < UNRELATED:
        return _opposite(new, old, similarity) if same_subject and new.bare_words & old.bare_words else None
    if not same_subject:
        owned = _same_owner(new, old, similarity)
        switched = _switched(new, old, similarity, correction=correction) if owned else None
        return _surer(switched, _changed_in_other_words(new, old, similarity))
    return (
        _attribute(new, old)
        or _opposite(new, old, similarity)
        or _newer_figure(new, old)
        or _came_true(new, old)
        or _ended(new, old)
        or _surer(_switched(new, old, similarity, correction=correction), _changed_in_other_words(new, old, similarity))
    )


def relate_each(pairs: Sequence[tuple[str, str, float]]) -> list[FactLink | None]:
    """The same for pairs of a newer text and an older one with their similarity."""
    return [relate(newer, older, similarity) for newer, older, similarity in pairs]


_NOT = FactLink(LinkKind.UNSURE, Reason.ANOTHER)
"""A slot of both says that they have nothing to do with one another."""


def _bare(text: str) -> str:
    return " ".join(word.strip(".,;:!?\"'()") for word in text.casefold().split())


def _same_subject(new: Claim, old: Claim) -> bool:
    """Whether both may speak of the same: equal subjects, or one only described more closely ("dog", "black dog")."""
    if new.gender and old.gender and not new.gender & old.gender:
        return False
    a, b = new.subject, old.subject
    if new.owner == old.owner and bool(new.possession) != bool(old.possession):
        thing, other = (new.possession, old) if new.possession else (old.possession, new)
        return thing <= frozenset(other.words)
    owners = new.clause.owners | old.clause.owners
    if a == b or not ((new.clause.verb and old.clause.verb) or new.clause.owners ^ old.clause.owners):
        return True
    if not a or not b:
        return False
    if new.attribute and old.attribute and (a <= b or b <= a):
        return True
    last = [opposites.canonical(each.clause.subject)[-1:] for each in (new, old)]
    return last[0] == last[1] and (a < b or b < a) and not (a ^ b) & owners


def _same_owner(new: Claim, old: Claim, similarity: float) -> bool:
    """Whether a change may be about the older statement although one of them is about the person and the other about
    something of theirs: "User's favourite film is ...", "User now considers ... the best"."""
    if new.owner != old.owner or not new.switches:
        return False
    shared = (new.possession | old.possession) & frozenset(new.words) & frozenset(old.words)
    return any(slot.name == "favourite" for slot in old.slots) or (bool(shared) and similarity >= NEAR)


def _of_another_person(new: Claim, old: Claim) -> bool:
    """Whether the newer one is about somebody else and the older one about the speaker or a thing of his."""
    about_speaker = old.owner == claims.USER.casefold()
    return bool(new.another) and about_speaker and not old.speaks_of(new.another, company=not new.owner_named)


def _another_instance(new: Claim, old: Claim) -> bool:
    """Whether two things of one kind are told apart by a word: "laptop at work", "laptop at home"."""
    a, b = new.named, old.named
    return bool(a & b) and len(a - b) == len(b - a) == 1


_RECURS = re.compile(r"\b(?:every|each|daily|weekly|monthly|(?:mon|tues|wednes|thurs|fri|satur|sun)days)\b", re.I)


def _overlap(new: Claim, old: Claim) -> float:
    a, b = new.bare_words, old.bare_words
    return len(a & b) / len(a | b) if a | b else 1.0


# -- the same ------------------------------------------------------------------------------------------------------


def _repeated(new: Claim, old: Claim) -> FactLink | None:
    """The same content words: nothing new, or the same statement in another tense."""
    if sorted(new.words) != sorted(old.words) or new.limits != old.limits:
        return None
    reason = contrast.differs(new.text, old.text)
    if reason is None:
        return _SAME
    return _CHANGED if reason == "tense" and not new.event else None


# One of these more, and another thing is said: "into the cage", "out of the cage".
_TURNS = frozenset(lexemes("out over up down off before after without against under above below far away excel"))


def _contained(new: Claim, old: Claim, similarity: float) -> FactLink | None:
    """One says all that the other says, and more. The poorer one goes, unless it is the less restricted."""
    a, b = set(new.words), set(old.words)
    if not (a < b or b < a):
        return None
    here, there = new.signature, old.signature
    if here.negations != there.negations or contrast.tense_differs(new.text, old.text):
        return None
    if new.limits != old.limits and (here.negations or new.limits - old.limits):
        return None  # "not good" is no part of "not just good"
    if b < a and not there.numbers - here.numbers:
        return _MORE if _kept(new, old) else None
    if a < b and not here.numbers - there.numbers and new.limits == old.limits:
        known = _runs_through(new.words, old.words) or (similarity >= NEAR_TEXT and _close(new, old))
        if known and contrast.differs(new.text, old.text) in (None, "name", "time", "number", "unit"):
            return _LESS if not contrast.names_only_in(new.text, old.text) else None
    return None


def _kept(new: Claim, old: Claim) -> bool:
    """Whether the longer text is about the same and not merely made of its words: no day or identifier is added to an
    event, and what is added turns nothing."""
    added = set(new.words) - set(old.words)
    if old.event and (new.dated != old.dated or new.identifiers != old.identifiers):
        return False
    if _runs_through(old.words, new.words):
        return True
    return not added & _TURNS and _in_order(old.words, new.words) and len(set(old.words)) * 2 >= len(set(new.words))


_ONE_MORE_WORDS = 5
_TOKEN = re.compile(r"\S+")
GATHERED = 0.8
"""Similarity from which two values of what one can have several of are told by one text: "Prefers morning calls" and
"Prefers morning meetings"."""


def _gathered(new: Claim, old: Claim, similarity: float) -> FactLink | None:
    same_verb = new.clause.verb == old.clause.verb
    if similarity < GATHERED or not same_verb or new.clause.verb != "prefer" or new.subject or old.subject:
        return None
    if sorted(new.words) == sorted(old.words):
        return None
    a, b = frozenset(new.words), frozenset(old.words)
    if len(a & b) < len(a | b) * SAME_TOPIC or new.signature != old.signature or new.switches or new.now:
        return None
    text = _joined(new.original, old.original)
    return FactLink(LinkKind.MORE, Reason.SAYS_MORE, text=text) if text else None


def _joined(new: str, old: str) -> str | None:
    """The old sentence with the differing words of the new one added by "and"; None when more than one spot differs, or
    when they are somebody's own words."""
    a, b = _TOKEN.findall(old.rstrip(" .")), _TOKEN.findall(new.rstrip(" ."))
    head = _shared(a, b)
    tail = _shared(a[head:][::-1], b[head:][::-1])
    was, added = a[head : len(a) - tail], b[head : len(b) - tail]
    if not (was and added) or max(len(was), len(added)) > _ONE_MORE_WORDS or not head or a[0].endswith(":"):
        return None
    stop = "." if old.rstrip().endswith(".") else ""
    listed = " ".join(was).replace(" and ", ", ")
    return " ".join([*a[:head], listed, "and", *added, *a[len(a) - tail :]]) + stop


def _shared(a: list[str], b: list[str]) -> int:
    """How many first words are equal, their case aside."""
    pairs = zip(a, b, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one.casefold() != other.casefold()), min(len(a), len(b))
    )


REWORDED = 0.95
"""Similarity from which two texts that share most of their words may be one told in other words."""


def _reworded(new: Claim, old: Claim, similarity: float) -> bool:
    """Whether both say the same, one of them in other words. Where a single word stands for a single other one ("the
    staging database", "the production database") another thing is meant, however near the texts are."""
    a, b = frozenset(new.words), frozenset(old.words)
    if similarity < REWORDED or len(a & b) * 2 < len(a | b) or len(a - b) == len(b - a):
        return False
    if (a ^ b) & _TURNS or new.limits != old.limits or new.dated or old.dated or new.identifiers != old.identifiers:
        return False
    shared = [tuple(word for word in each.words if word in a & b) for each in (new, old)]
    return shared[0] == shared[1] and contrast.differs(new.text, old.text) is None and not new.past and not old.past


def _in_order(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    rest = iter(whole)
    return all(word in rest for word in part)


def _close(new: Claim, old: Claim) -> bool:
    more = set(old.words) ^ set(new.words)
    return len(more) <= 2 and len(more) * 4 <= len(set(new.words)) + 1 and not more & _TURNS


def _runs_through(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Whether `part` stands in `whole` in one piece: "likes dogs" is no part of "likes hot dogs"."""
    width = len(part)
    return 0 < width < len(whole) and any(whole[at : at + width] == part for at in range(len(whole) - width + 1))


# -- one value at a time ---------------------------------------------------------------------------------------------


def _by_slots(new: Claim, old: Claim, *, same_subject: bool) -> FactLink | None:
    """The first slot of both that decides; None when they share none."""
    if not new.slots:  # before the older one is read for its own
        return None
    there = {(slot.name, slot.of): slot for slot in old.slots}
    for slot in new.slots:
        known = there.get((slot.name, slot.of))
        if known is not None and (same_subject or slot.of or (slot.name in _OWNED and new.owner == old.owner)):
            found = _by_slot(new, old, slot, known)
            if found is not None:
                return found
    return None


_OWNED = frozenset({"pet", "vehicle"})
"""Slots told of the thing itself as well: "User has a dog named Rex", "User's dog Rex died"."""


def _by_slot(new: Claim, old: Claim, slot: SlotValue, known: SlotValue) -> FactLink | None:
    if old.former or (new.former and not new.ends):
        return _NOT
    meets = _values_meet(slot, known)
    if new.ends and not new.switches:
        ended = not slot.value or meets or bool(_kinds(known) & frozenset(new.words))
        return (_CHANGED if new.denied != old.denied or not old.denied else None) if ended else _NOT
    if new.switches and slot.value and known.value and not meets and not old.tentative:
        return _CHANGED_VALUE
    if new.denied != old.denied:
        if meets or not slot.value or not known.value:
            return _OPPOSITE
        return _OPPOSITE if old.denied and not slot.exclusive else _NOT
    if new.past and not old.past:
        return _NOT  # what was so before
    if old.tentative:
        return _CHANGED_VALUE if meets else None
    if meets:
        return _same_value(new, old) if slot.exclusive else None
    if new.past and not slot.exclusive:
        return None
    if slot.name == "name" and (new.subject & _SEVERAL or slot.of):
        return None
    if slot.name in ("vehicle", "method") and new.now and new.clause.verb == old.clause.verb and slot.value:
        return _CHANGED_VALUE
    if new.switches and known.value != slot.value:
        return _CHANGED_VALUE
    if not slot.exclusive:
        return _UNSURE if slot.name == "vehicle" else None
    if not slot.value or not known.value:
        return None
    return _NEW_VALUE


def _values_meet(slot: SlotValue, known: SlotValue) -> bool:
    if slot.names and known.names:
        return bool(slot.names & known.names)
    a, b = slot.value, known.value
    return bool(a and b) and (a <= b or b <= a)


_SEVERAL = frozenset(
    opposites.canonical(
        lexemes(
            "brother sister friend cousin aunt uncle son daughter child kid colleague neighbour neighbor dog cat pet"
            " nephew niece"
            " grandson granddaughter roommate flatmate twin client customer student teammate"
        )
    )
)
"""Of whom one may have several, so that another name is another one."""
_LIGHT = frozenset(
    opposites.canonical(
        lexemes(
            "live lives lived living resides based located work works worked working employed job move moved"
            " relocated join joined"
            " born birthday name named now currently new just recently home located become became attend study come"
            " originally"
        )
    )
)
"""Words of an attribute that add nothing to its value."""


def _same_value(new: Claim, old: Claim) -> FactLink | None:
    a, b = set(new.words) - _LIGHT, set(old.words) - _LIGHT
    if new.signature.negations != old.signature.negations or new.limits != old.limits:
        return None
    if a <= b:
        return _LESS
    return _MORE if b < a else None


_DOGS = frozenset(
    lexemes(
        "retriever labrador beagle poodle terrier bulldog spaniel dachshund whippet greyhound husky"
        " collie shepherd corgi pug mutt puppy"
    )
)
_CATS = frozenset(lexemes("kitten tabby siamese coon ragdoll"))


def _kinds(slot: SlotValue) -> frozenset[str]:
    """Stems of a value with what kind of thing it is: a retriever is a dog."""
    kinds = {"dog"} if slot.value & _DOGS else {"cat"} if slot.value & _CATS else set()
    return slot.value | kinds


_PLACED = re.compile(r"\b(?:is|are|be) (?:now |currently )?(?P<how>at|on|in|about|with|for|due|from|by|to|of)?\b", re.I)


def _attribute(new: Claim, old: Claim) -> FactLink | None:
    """Another value of a thing's attribute: "the rate limit is 500", "is now 800"."""
    if not (new.attribute and old.attribute) or not (new.attribute <= old.attribute or old.attribute <= new.attribute):
        return None
    if new.past or old.event or new.denied or old.denied or _other_day(new, old):
        return None
    if claims.apart(new.identifiers, old.identifiers):
        return None
    if new.switches:
        return FactLink(LinkKind.ENDS, Reason.CHANGE, by_slot=True)
    rest = [frozenset(each.words) - each.attribute for each in (new, old)]
    if rest[0] <= rest[1] or rest[1] <= rest[0]:
        return None
    if _type(new) != _type(old) or _how(new) != _how(old) or new.clause.verb != old.clause.verb:
        return None
    if new.measured and old.measured:
        return _UNSURE
    return _NEW_VALUE


def _type(claim: Claim) -> str:
    signature = claim.signature
    if signature.numbers or signature.times:
        return "figure"
    return "name" if contrast.names_only_in(claim.text, "") - frozenset(claim.clause.subject) else "word"


def _how(claim: Claim) -> str:
    found = _PLACED.search(claim.text)
    return (found["how"] or "").casefold() if found else ""


def _other_day(new: Claim, old: Claim) -> bool:
    """Whether they tell of two days, and not only of a thing whose day is another one now: two occasions."""
    if not new.dates or not old.dates or new.dates == old.dates:
        return False
    return new.undated != old.undated or not new.is_be or new.clause.past


_HABIT = re.compile(
    r"\b(?:every|each|daily|weekly|monthly|usually|always|a (?:day|week|month|year)|per|wakes?|rises?|up at)\b", re.I
)


def _newer_figure(new: Claim, old: Claim) -> FactLink | None:
    """The same statement with another figure, of something that has one at a time."""
    if _overlap(new, old) < SAME_FRAME or contrast.differs(new.text, old.text) not in ("number", "unit", "time"):
        return None
    if new.event or old.event or new.past or old.past or not (new.definite and old.definite) or _other_day(new, old):
        return None
    here, there = new.identifiers, old.identifiers
    if claims.apart(here, there) or here.keys() ^ there.keys():
        return None
    numbers, times = new.signature.numbers != old.signature.numbers, new.signature.times != old.signature.times
    if numbers and times and not (_clock(new) and _clock(old)):
        return None  # another occasion
    if new.measured or old.measured:
        return _UNSURE
    set_once = new.clause.verb == old.clause.verb and new.clause.verb in _SCHEDULED and bool(new.subject)
    if not times or new.now or set_once or _HABIT.search(new.text):
        return _NEW_VALUE
    return _UNSURE


_SCHEDULED = frozenset({"be", *lexemes("expire start begin end leave close open depart arrive")})


def _clock(claim: Claim) -> bool:
    return bool(claim.signature.times & {"a", "p"})


# -- changes -----------------------------------------------------------------------------------------------------------

_NEVER = re.compile(
    r"\b(?:never|has not|have not|hasn't|haven't|not yet|(?:does not|doesn't|do not|don't) (?:own|have))\b", re.I
)


def _opposite(new: Claim, old: Claim, similarity: float) -> FactLink | None:
    """The same frame with a negation or an opposite in it, and what had never been so and now is."""
    if (new.dated and old.dated and new.signature.times != old.signature.times) or new.former or old.former:
        return None
    shared = new.bare_words & old.bare_words - claims.NO_TOPIC
    if not shared or claims.apart(new.identifiers, old.identifiers):
        return None
    if contrast.names_only_in(new.text, old.text) and contrast.names_only_in(old.text, new.text):
        return None
    overlap = _overlap(new, old)
    a, b = lexemes(new.text), lexemes(old.text)
    if opposites.opposed(a, b) and overlap >= 1 / 3 and new.signature.numbers == old.signature.numbers:
        return _OPPOSITE
    if new.signature.negations != old.signature.negations and overlap >= SAME_TOPIC:
        return _OPPOSITE
    denied = new.bare_words - _ENDING - new.subject
    if new.denied and not old.denied and denied and denied <= old.bare_words:
        return _OPPOSITE  # who does not smoke does not smoke ten a day
    if contrast.reordered(new.text, old.text) and new.clause.verb == "prefer":
        return _OPPOSITE
    if shared - new.subject and similarity >= ON_TOPIC and old.denied and not new.denied and _NEVER.search(old.text):
        return _OPPOSITE
    return None


def _came_true(new: Claim, old: Claim) -> FactLink | None:
    """A plan that was carried out."""
    if not old.tentative or new.tentative or old.denied:
        return None
    planned = old.bare_words - _PLANNING
    return _CHANGED if planned and len(planned & new.bare_words) * 2 > len(planned) else None


_PLANNING = frozenset(
    opposites.canonical(lexemes("want plan hope consider think might maybe look search wish intend go get try"))
)
_ENDING = frozenset(
    opposites.canonical(
        lexemes(
            "no longer not anymore any more used quit stop stopped gave give up sold sell left lost cancel cancelled"
            " retire retired"
            " end ended came come off drop dropped out depreci deprecated discontinued resigned passed away died"
            " never again former"
            " now got rid over graduated go going moved heal healed recovered"
        )
    )
)


def _ended(new: Claim, old: Claim) -> FactLink | None:
    """The end of what the older statement says: "quit smoking", "sold the Tesla"."""
    if not new.ends or old.event or old.former or (old.ends and old.denied == new.denied):
        return None
    what = new.over - _ENDING - new.subject
    if not what or contrast.names_only_in(new.text, old.text) - _ENDING:
        return None
    return _CHANGED if len(what & old.bare_words) * 2 >= len(what) else None


_ONE_AT_A_TIME = frozenset(
    lexemes("use drive support ride wear teach work live prefer read watch follow train study attend drink eat be call")
)


def _switched(new: Claim, old: Claim, similarity: float, *, correction: bool) -> FactLink | None:
    """A change told in other words, about the same subject and near in meaning."""
    if old.event or old.former or _back_to(new, old) or not (new.switches or new.now or correction):
        return None
    if new.bare_words == old.bare_words and new.signature != old.signature:
        return None  # one template, two occasions
    if not new.switches and not correction:
        return _now_so(new, old, similarity)
    mine, known = new.slot_names, old.slot_names
    hinted = bool(known & new.hints)
    if new.takes_role and not (known & _ROLES and mine & _ROLES):
        return None
    if mine and known and not mine & known and not hinted:
        return None
    strength = similarity + (
        HINTED if hinted or (new.subject and new.subject == old.subject and new.definite and _thing(new)) else 0.0
    )
    if strength >= ON_TOPIC and (hinted or claims.shared_topic(new, old)) and not _of_another(new, old):
        return _CORRECTED if correction else _CHANGED
    return _UNSURE if strength >= PERHAPS else None


_ROLES = frozenset({"employer", "occupation", "holder", "school"})


_UNITS = frozenset(lexemes("euro dollar pound percent minute hour day week month year kilo kilometre mile gram"))


def _changed_in_other_words(new: Claim, old: Claim, similarity: float) -> FactLink | None:
    """A change told of anything, near in meaning to a state and with a word of its topic: "Zeke quit, so Marcy plays
    drums" ends "Zeke is the drummer of the band". A state that is less near may be outdated."""
    if not new.changes or new.former or old.former or ((old.event or old.tentative) and not _replans(new, old)):
        return None
    if new.slots and old.slots and not new.slot_names & old.slot_names:
        return None
    shared = claims.shared_topic(new, old) - _UNITS
    if claims.apart(new.identifiers, old.identifiers) or len(shared) * MOSTLY_OTHER < len(new.bare_words):
        return None
    if _overlap(new, old) >= ONE_TEMPLATE or (new.measured and old.measured and new.dated):
        return None  # one template, two things or two days
    if similarity >= CHANGED_FROM and not _of_another(new, old):
        return _CHANGED
    return _UNSURE if similarity >= ON_TOPIC else None


def _replans(new: Claim, old: Claim) -> bool:
    """Whether a plan is told with what takes the place of what: "to Vienna instead of Brno"."""
    return old.tentative and bool(new.replaced) and new.replaced <= frozenset(old.words)


def _of_another(new: Claim, old: Claim) -> bool:
    """Whether the change is of something or somebody else's: "my daughter's lesson" against mine, "Ingrid has a new
    manager", "rice instead of pasta" against a text without pasta."""
    if new.replaced and not new.replaced & frozenset(old.words):
        return True
    if new.relative and old.owner == claims.USER.casefold() and not new.relative & frozenset(old.words):
        return True
    return new.owner != old.owner and not _thing(new) and new.gets_new


def _surer(*links: FactLink | None) -> FactLink | None:
    """The first link that says what to do, else the first doubt."""
    found = [link for link in links if link is not None]
    return next((link for link in found if link.kind is not LinkKind.UNSURE), found[0] if found else None)


def _back_to(new: Claim, old: Claim) -> bool:
    """Whether the older statement tells of the very thing that is so now: it is the one before that ends."""
    value = re.split(r"\b(?:to|into|with|at|joined|became)\b", new.text[len(new.head) :])[-1]
    names = contrast.names_only_in(f"x {value}", "")
    return bool(names) and not contrast.names_only_in(f"x {value}", old.text)


def _thing(claim: Claim) -> bool:
    """Whether its subject is a thing and no named person: things do not change in so many ways."""
    return not contrast.names_only_in(f"x {' '.join(claim.text.split()[:2])}", "")


def _now_so(new: Claim, old: Claim, similarity: float) -> FactLink | None:
    verb = new.clause.verb
    if verb != old.clause.verb or verb not in _ONE_AT_A_TIME or old.denied:
        return _UNSURE if similarity >= 0.7 and not old.denied else None
    if verb == "be" and not new.subject:
        return None
    return _CHANGED if similarity >= ON_TOPIC else None
