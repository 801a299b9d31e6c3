"""Compares two values of one attribute: the same, one finer than the other, or different."""

from __future__ import annotations

from enum import StrEnum

from service.language import wordlists
from service.language.facts import wordbook
from service.language.lexemes import lexemes
from service.language.opposites import canonical, levelled


class Match(StrEnum):
    """How a new value stands to an old one; FINER: the new one says more of the same."""

    EQUAL = "equal"
    FINER = "finer"
    COARSER = "coarser"
    OTHER = "other"


_NOISE = frozenset(
    stem
    for word in wordlists.words("user really very now currently also just still assistant again lot much")
    for stem in lexemes(word)
)
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve"
_DIGITS = {word: str(n) for n, word in enumerate(_NUMBERS.split())}


_AS = _DIGITS | {
    "children": "child",
    "kids": "child",
    "wives": "wife",
    "mice": "mouse",
    "feet": "foot",
    "people": "person",
}


def stems(text: str) -> tuple[str, ...]:
    """Returns the content words, synonyms made one, in order; "User", "now" and the like do not count."""
    words = " ".join(_AS.get(word.lower(), word) for word in levelled(text).split())
    return tuple(stem for stem in canonical(lexemes(words)) if stem not in _NOISE)


def match(new: str, old: str) -> Match:
    """Returns how two values compare by their content words."""
    a, b = set(stems(new)), set(stems(old))
    if a == b:
        return Match.EQUAL if a or new.casefold() == old.casefold() else Match.OTHER
    if not a or not b:
        return Match.OTHER
    return Match.FINER if b < a else Match.COARSER if a < b else Match.OTHER


_MEAT, _FISH, _DAIRY, _EGGS = "meat", "fish", "dairy", "eggs"
_CLAIMS: dict[str, dict[str, bool]] = {
    "vegan": {_MEAT: False, _FISH: False, _DAIRY: False, _EGGS: False},
    "plant-based": {_MEAT: False, _FISH: False, _DAIRY: False, _EGGS: False},
    "vegetarian": {_MEAT: False, _FISH: False},
    "veggie": {_MEAT: False, _FISH: False},
    "pescatarian": {_MEAT: False, _FISH: True},
    "pescetarian": {_MEAT: False, _FISH: True},
    "carnivore": {_MEAT: True},
    "omnivore": {_MEAT: True},
    "flexitarian": {_MEAT: True},
    "dairy-free": {_DAIRY: False},
    "gluten-free": {"gluten": False},
    "celiac": {"gluten": False},
    "coeliac": {"gluten": False},
    "halal": {"pork": False},
    "kosher": {"pork": False},
    "keto": {"carbs": False},
    "sober": {"alcohol": False},
    "teetotal": {"alcohol": False},
    "teetotaler": {"alcohol": False},
}


def diet(value: str, *, eats: bool) -> dict[str, bool]:
    """Returns what a diet says about foods: "vegetarian" no meat and no fish; empty for one we know nothing of.

    `eats` is the statement's polarity: denied, a food's claim turns round, and a diet's falls where it forbids.
    """
    words = [word.strip(",.").lower() for word in value.split()]
    for word in words:
        if word in _CLAIMS:
            claims = _CLAIMS[word]
            return (
                claims
                if eats
                else {food: True for food, allowed in claims.items() if not allowed and food == next(iter(claims))}
            )
    claims = {}
    for word in words[:6]:
        if word in wordbook.MEATS and not (word != "meat" and not eats):
            claims[_MEAT] = eats
        elif word in wordbook.FISHES and not (word not in ("fish", "seafood") and not eats):
            claims[_FISH] = eats
        elif word == "dairy":
            claims[_DAIRY] = eats
    return claims


def diet_name(value: str) -> str:
    """Returns the diet named in a value, "" when foods are named instead."""
    return next((word for word in (w.strip(",.").lower() for w in value.split()) if word in wordbook.DIETS), "")
