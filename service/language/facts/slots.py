"""The attribute of its subject that a statement gives, and the value.

A table of verbs and of what follows them. SINGLE holds the attributes that have one value at a time, where a newer
value ends the older; all others gather. What no row reads has no slot, and is still a fact.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from service.language import wordlists
from service.language.facts import jobs, slot_table, wordbook
from service.language.facts.fact import USER
from service.language.facts.statement import Statement
from service.language.gazetteer import NAMES

SINGLE = wordlists.words("""
    name nickname job home origin birthplace birthday age diet marital height weight children address timezone
    native_language salary pronouns work_mode
""")
SINGLE_PREFIXES = ("favorite:", "attribute:", "contact:")


def is_single(slot: str) -> bool:
    """Returns whether the attribute has one value at a time, so that a newer one ends the older."""
    if slot.startswith("relationship:"):
        return slot.removeprefix("relationship:") in wordbook.SINGLE_KIN
    return slot in SINGLE or slot.startswith(SINGLE_PREFIXES)


class SlotReading(NamedTuple):
    """A slot and its value."""

    slot: str
    value: str


UNBEARABLE = wordlists.words("stand bear tolerate abide stomach")
"""What one "can't" is disliked: a denial in form alone."""

_TASTE = wordlists.words("like love enjoy adore")
_GET = wordlists.words("have own adopt get buy rescue keep")
_NAMED = re.compile(
    rf"\b(?:named|called|whose name is|name is)\s+(?P<name>{slot_table.NAME})|,\s*(?P<bare>{slot_table.NAME})$"
)
_HEDGED_PLACE = re.compile(
    r"[,\s]+(?:since|for|with|now|last|next|when|because|after|before|this|these days|at the moment|right now"
    r"|currently|again|to (?:be|work|study|start|live|join|take|help)|about|where|which|who|from|until|during|as"
    r"|on"
    r"|a (?:few|couple)|two|three|four|five|six|\d+|in (?:\d{4}|january|february|march|april|may|june|july"
    r"|august|september|october|november|december|the (?:spring|summer|fall|autumn|winter))"
    r"|\w+ (?:years?|months?|weeks?|days?) ago|recently|permanently|yesterday|today|soon|and (?:love|like|really"
    r"|it|that)|but|so|anymore|full[- ]time|together|alone|though)\b.*$",
    re.IGNORECASE,
)
_PLACE_NOISE = re.compile(r"^(?:the city of|downtown|central|beautiful|sunny|rainy)\s+", re.IGNORECASE)


def place(value: str) -> str:
    """Returns the place that a phrase begins with: "Oslo with my wife since May" gives "Oslo"."""
    return _PLACE_NOISE.sub("", _HEDGED_PLACE.sub("", value)).strip(" ,.")


def read(s: Statement) -> SlotReading | None:
    """Returns the slot and value of a statement, None where no row reads it."""
    for reader in (_possession, jobs.slot, _diet, _company, _language, _taste, _table):
        found = reader(s)
        if found and found[1].strip(" ,.") not in ("", "it", "that", "this", "them"):
            return SlotReading(found[0], trimmed(*found))
    return None


_WHEN = re.compile(
    r"[\s,]+(?:(?:last|this|next) (?:week|weekend|month|year|summer|winter|spring|fall|autumn|night|\w+day)"
    r"|yesterday|today|tomorrow|\w+ (?:days?|weeks?|months?|years?) ago|recently|these days|right now|now"
    r"|someday|one day"
    r"|at the moment|nowadays|for (?:about |over |almost |the (?:last|past) )?(?:\w+ )?(?:years?|months?|weeks?"
    r"|ages)|since .+|(?:because|since|so that|so they|which|although|though|even though|but|if|whenever)\b.*"
    r"|years ago|a lot|very much|so much|too much|the most|as well|too|instead|after all)$",
    re.IGNORECASE,
)


def trimmed(slot: str, value: str) -> str:
    """Returns the value of a slot ("" for none) without the time and the reason behind it."""
    value = value.strip(" ,.")
    if slot in ("birthday", "habit", "job") or slot.startswith("attribute:"):
        return value
    for _ in range(3):
        value = _WHEN.sub("", value)
    return value


def _table(s: Statement) -> tuple[str, str] | None:
    for slot, words, pattern in slot_table.ROWS:
        if s.verb not in words:
            continue
        match = pattern.match(s.rest)
        if match is None or (slot == "home" and s.verb == "stay" and not s.perfect):
            continue
        value = next((text for text in match.groupdict().values() if text), match.group())
        return _settled(slot, value, s)
    return None


def _settled(slot: str, value: str, s: Statement) -> tuple[str, str] | None:
    """Second thoughts on a row that matched."""
    if slot in ("home", "origin", "birthplace"):
        value = place(value)
        named = value[:1].isupper() or value.casefold() in NAMES
        if s.verb in ("move", "be") and not named and slot != "home":
            return None
        if s.verb == "move" and re.match(r"(?:the )?(?:gym|next|other|another|bed|couch|kitchen|\w+ing)\b", value):
            return None
    if slot == "goal" and s.verb == "look" and not s.progressive:
        return None
    if slot == "project" and s.verb not in ("work",) and not s.progressive:
        return None
    if slot == "habit" and s.past and not s.ended:
        return None
    if slot == "health" and re.search(r"allerg", value):
        return "allergy", value
    return slot, value


_NOW = re.compile(r"[\s,]+(?:now|nowadays|these days|at the moment|right now|currently|again)$", re.IGNORECASE)


def _possession(s: Statement) -> tuple[str, str] | None:
    """ "User's name is Bob": the subject itself names the attribute."""
    rest = _NOW.sub("", s.rest)
    if s.verb != "be" or not rest:
        return None
    s = replace(s, rest=rest)
    owner, mark, noun = s.subject.rpartition("'s ")
    if owner.startswith("user's ") and noun == "name":
        return _related(owner.removeprefix("user's "), s.rest)
    noun = noun if mark else s.subject
    noun = re.sub(r"^(?:new|current|full|first|real|own|last|latest|actual|present|old) ", "", noun.lower())
    if not mark and noun == USER:
        return None
    if mark:
        for slot, nouns in slot_table.ATTRIBUTES.items():
            if noun in nouns:
                return slot, s.rest
        favorite = re.match(r"(?:all[- ]time )?favou?rite (.+)", noun)
        if favorite:
            return f"favorite:{_singular(favorite.group(1))}", s.rest
        related = _related(noun, s.rest)
        if related:
            return related
    aged = re.match(
        r"(?:almost |nearly |about |only )?(\d{1,3}|(?:one|two|three|four|five|six|seven|eight|nine|ten"
        r"|\w+teen)\b)(?P<unit> years?(?: old)?| months? old| weeks? old)?$",
        s.rest,
    )
    named = s.subject.istitle() and s.subject.isalpha() and s.subject.casefold() not in NAMES
    if aged and ((mark and (wordbook.kin(noun) or wordbook.animal(noun))) or named):
        return "age", s.rest
    described = re.match(rf"(?:an? )?(?P<what>[\w -]+?) (?:named|called) (?P<name>{slot_table.NAME})$", s.rest)
    if mark and described and wordbook.animal(noun) and wordbook.animal(described["what"]):
        return "pet", f"{described['what']} {described['name']}"
    if _NAMED.match(s.rest):
        return "name", _NAMED.match(s.rest)["name"]  # type: ignore[index]
    if mark and noun and (noun.split()[-1] in wordbook.KIN or wordbook.animal(noun)):
        return None  # somebody is many things at a time
    return (f"attribute:{noun}", s.rest) if _measured(s.rest) and not s.progressive else None


def _singular(noun: str) -> str:
    return (
        noun.replace("colour", "color").replace("movie", "film").removesuffix("s") if not noun.endswith("ss") else noun
    )


def _related(noun: str, rest: str) -> tuple[str, str] | None:
    """ "User's sister is Ann", "User's dog is called Rex"."""
    named = re.match(rf"(?:named |called )?(?P<name>{slot_table.NAME})$", rest)
    if not named:
        return None
    if relation := wordbook.kin(noun):
        return f"relationship:{relation}", named["name"]
    return ("pet", f"{noun} {named['name']}") if wordbook.animal(noun) else None


_MEASURED = re.compile(
    r"(?:\w+ )?(?:[$€£]?\d|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:january|february|march|april|may|june"
    r"|july|august|september|october|november|december)\b"
    r"|(?:on|at|by|around|about|due|due on|scheduled for|in) (?:the )?(?:\w+ )?(?:[$€£]?\d|\w+day\b|january"
    r"|february|march|april|may|june|july|august|september|october|november|december|noon|midnight)"
    r"|tomorrow|tonight|next \w+|noon|midnight|[A-Z][\w.-]+$|[A-Z][\w.-]+ [A-Z][\w.-]+$)"
)


def _measured(rest: str) -> bool:
    """Whether a value is a figure, a date or a name, of which an attribute has one at a time; "is slow" is none."""
    return _MEASURED.match(rest) is not None or _MEASURED.match(rest.lower()) is not None


def _diet(s: Statement) -> tuple[str, str] | None:
    words = {word.strip(",.").lower() for word in s.rest.split()[:5]}
    if s.verb == "eat" and s.rest:
        foods = wordbook.MEATS | wordbook.FISHES | wordbook.DAIRY | wordbook.DIETS
        first = s.rest.split()[0].lower().strip(",.")
        return (
            "diet"
            if words & foods and (first in foods or first in ("any", "only", "all", "red", "a", "no"))
            else "food"
        ), s.rest
    if s.verb in ("be", "go", "become", "turn", "follow", "keep"):
        named = words & wordbook.DIETS
        if named and "lactose" not in named and not words & wordlists.words("restaurant food recipe recipes cookbook"):
            return "diet", next(word for word in s.rest.replace(",", " ").split() if word.lower().strip(".") in named)
    return None


def _company(s: Statement) -> tuple[str, str] | None:
    """Relatives and animals: "has a sister named Ann", "adopted two cats"."""
    if s.verb == "divorce":
        return "marital", "divorced"
    if s.verb == "marry" or (s.verb == "date" and s.progressive):
        return "marital", "married" if s.verb == "marry" else "dating"
    if s.verb not in _GET or not s.rest:
        return None
    head = re.split(r"\b(?:named|called|who|that|which|in|at|with|from|for|since|and|whose)\b|,", s.rest)[0]
    named = _NAMED.search(s.rest)
    name = (named["name"] or named["bare"]) if named else None
    words = head.split()
    if words and (
        re.fullmatch(r"an?|the|their|one|two|three|four|five|\d+|some|new|several|another|no|any", words[0].lower())
    ):
        last = words[-1].lower().strip(",.")
        if (wordbook.animal(last) or wordbook.animal(head)) and len(words) <= 5:
            return "pet", f"{_core(head)} {name}" if name else _core(head)
        if (
            s.verb == "have"
            and (last in wordbook.KIN or last.rstrip("s") in wordbook.KIN)
            and not re.match(
                rf"{slot_table.NUMBER} .*(?:kids?|child|children|sons?|daughters?|boys?|girls?)$", head.strip()
            )
        ):
            return f"relationship:{wordbook.kin(last) or wordbook.kin(last.rstrip('s'))}", name or _core(head)
    if s.verb == "have" and wordbook.ILLNESS.search(head) and "allerg" not in head.lower():
        return "health", s.rest
    return None


def _core(noun_phrase: str) -> str:
    return re.sub(
        r"^(?:an?|the|their|some|new|another|any)\s+(?:new\s+)?",
        "",
        _WHEN.sub("", noun_phrase).strip(" ,."),
        flags=re.IGNORECASE,
    )


def _language(s: Statement) -> tuple[str, str] | None:
    words = [word.strip(",.").lower() for word in s.rest.split()]
    if s.verb in ("speak", "learn", "study", "know", "practice", "understand") and any(
        word in wordbook.LANGUAGES for word in words[:4]
    ):
        return "language", s.rest
    return ("skill", s.rest) if s.verb == "learn" and s.rest else None


def _taste(s: Statement) -> tuple[str, str] | None:
    if s.verb in UNBEARABLE and s.able and s.negative:
        return "dislikes", s.rest
    if s.verb in _TASTE and s.rest:
        return ("goal", s.rest.removeprefix("to ")) if s.wish else ("likes", s.rest.removeprefix("to "))
    return None
