"""Figures, points in time and units in a text.

Normalised, so that "three dogs" and "3 dogs", "Fridays" and "Friday", "5 km" and "5 kilometres" are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_FROM_ZERO = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "first second third fourth fifth sixth seventh"
_NUMBER_WORDS = {
    **{word: str(value) for value, word in enumerate(_FROM_ZERO.split())},
    **{word: str(value * 10) for value, word in enumerate(_TENS.split(), 2)},
    **{word: str(value) for value, word in enumerate(_ORDINALS.split(), 1)},
    "hundred": "100",
    "thousand": "1000",
    "million": "1000000",
    "billion": "1000000000",
    "dozen": "12",
    "half": "0.5",
    "once": "1",
    "twice": "2",
    "thrice": "3",
    "double": "2",
    "triple": "3",
    "both": "2",
}
# "one" is mostly a pronoun or an article ("the one", "one dog" for "a dog"): it is no figure by itself.
del _NUMBER_WORDS["one"]

_NUMBER = re.compile(r"(?<![\w.])[-−+]?\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?(?=\D|$)")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")

TIMES: dict[str, str] = {
    alias: names.split()[0]
    for names in (
        "monday mondays mon",
        "tuesday tuesdays tue tues",
        "wednesday wednesdays wed",
        "thursday thursdays thu thur thurs",
        "friday fridays fri",
        "saturday saturdays sat",
        "sunday sundays sun",
        "january jan",
        "february feb",
        "march mar",
        "april apr",
        "may",
        "june jun",
        "july jul",
        "august aug",
        "september sep sept",
        "october oct",
        "november nov",
        "december dec",
        "today",
        "tomorrow",
        "yesterday",
        "tonight",
        "noon midday",
        "midnight",
        "morning mornings",
        "afternoon afternoons",
        "evening evenings",
        "night nights",
        "weekend weekends",
        "weekday weekdays",
        "daily",
        "weekly",
        "monthly",
        "yearly annually",
        "hourly",
        "spring",
        "summer",
        "autumn fall",
        "winter",
        "am",
        "pm",
        "ago",
        "next",
        "last",
        "before",
        "after",
        "until till",
        "since",
        "christmas",
        "easter",
    )
    for alias in names.split()
}
_CAPITALISED_TIMES = frozenset({"mon", "sat", "sun", "mar", "march", "may", "jan", "jun", "wed", "fri", "dec"})
_AMBIGUOUS_TIMES = frozenset({"am", "fall"})  # "I am"; "the prices fall"

_UNITS: dict[str, str] = {
    alias: names.split()[0]
    for names in (
        "% percent pct",
        "$ usd dollar dollars bucks",
        "€ eur euro euros",
        "£ gbp pound pounds quid",
        "¥ yen jpy",
        "ms millisecond milliseconds",
        "s sec secs second seconds",
        "min mins minute minutes",
        "h hr hrs hour hours",
        "day days d",
        "week weeks",
        "month months",
        "year years yr yrs",
        "mm",
        "cm centimetre centimeter centimetres centimeters",
        "m metre meter metres meters",
        "km kilometre kilometer kilometres kilometers kms",
        "mile miles mi",
        "inch inches",
        "foot feet ft",
        "mg milligram milligrams",
        "g gram grams",
        "kg kilo kilos kilogram kilograms",
        "lb lbs",
        "ml",
        "l litre liter litres liters",
        "kb kilobyte kilobytes",
        "mb megabyte megabytes",
        "gb gigabyte gigabytes gigs",
        "tb terabyte terabytes",
        "k",
        "c celsius °c",
        "f fahrenheit °f",
    )
    for alias in names.split()
}
_QUANTITY = re.compile(r"([$€£¥])?\s?\d(?:[\d.,:]*\d)?(?:[kK](?=\s))?\s?-?(%|°?[a-zA-Z]+)?")

_WORD = re.compile(r"[^\W_](?:[^\W_]|[-.'\u2019&+#](?=[^\W_])|[+#](?!\w))*")


def numbers(text: str) -> Iterator[str]:
    """Yields every figure, in digits or words, as digits: "1,000", "twice", "2nd", "-5"."""
    for match in _NUMBER.finditer(text):
        yield _ORDINAL.sub("", match.group().lstrip("+").replace("−", "-")).replace(",", "")
    for word in _WORD.findall(text):
        for part in word.casefold().split("-"):
            if part in _NUMBER_WORDS:
                yield _NUMBER_WORDS[part]


def times(text: str) -> Iterator[str]:
    """Yields weekdays, months, parts of the day and relative words such as "tomorrow", each by one name; am and pm."""
    for word in _WORD.findall(text):
        lowered = word.casefold()
        if lowered in _AMBIGUOUS_TIMES or (lowered in _CAPITALISED_TIMES and not word[0].isupper()):
            continue
        if lowered in TIMES:
            yield TIMES[lowered]
    yield from (match.group(1).casefold() for match in re.finditer(r"\d\s?([ap])\.?m\b", text, re.IGNORECASE))


def units(text: str) -> Iterator[str]:
    """Yields the unit or currency of every quantity, by its short name."""
    for match in _QUANTITY.finditer(text):
        for unit in match.groups():
            if unit and unit.casefold() in _UNITS:
                yield _UNITS[unit.casefold()]


def has_unit(text: str) -> bool:
    """Whether a text begins with a figure and its unit: "10 km", "40 hours"."""
    match = _QUANTITY.match(text)
    return match is not None and any(unit and unit.casefold() in _UNITS for unit in match.groups())


def in_digits(text: str) -> str:
    """The text with its small number words in digits, "one" aside: "three dogs" and "3 dogs" are the same."""
    return _WRITTEN.sub(lambda found: _NUMBER_WORDS[found.group().casefold()], _HAS_ONE.sub(r"\1 1", text))


_WRITTEN = re.compile(rf"\b(?:{'|'.join(f'{_FROM_ZERO} {_TENS}'.replace(' one ', ' ').split())})\b", re.IGNORECASE)
_HAS_ONE = re.compile(r"\b(has|have) one\b(?= \w)", re.IGNORECASE)
