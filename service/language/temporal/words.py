"""Words of time, what they count, and the slots that patterns of rules are made of.

Everything is matched on lower-cased English text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

listed = str.split  # a list of words reads better as one string
MONTHS = listed("january february march april may june july august september october november december")
WEEKDAYS = listed("monday tuesday wednesday thursday friday saturday sunday")  # index as in date.weekday()
_DIGITS = listed("one two three four five six seven eight nine")
_TEENS = listed("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
_TENS = dict(zip(listed("twenty thirty forty fifty sixty seventy eighty ninety"), range(20, 100, 10), strict=True))
NUMBERS = {word: value for value, word in enumerate([*_DIGITS, *_TEENS], 1)} | _TENS
NUMBERS |= {"zero": 0, "a": 1, "an": 1, "forty-five": 45}
VAGUE = {"couple": 2, "few": 3}  # "a few days": the count everybody can live with
_SMALL = listed("first second third fourth fifth sixth seventh eighth ninth")
_ORDINALS = [
    *_SMALL,
    *listed("tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"),
]
ORDINAL_DAYS = (
    {word: value for value, word in enumerate([*_ORDINALS, "twentieth"], 1)}
    | {f"twenty {word}": 20 + value for value, word in enumerate(_SMALL, 1)}
    | {"thirtieth": 30, "thirty first": 31}
)
_DAY_WORDS = (
    ORDINAL_DAYS
    | {word: value for word, value in NUMBERS.items() if 13 <= value <= 30}
    | {f"twenty {word}": 20 + value for value, word in enumerate(_DIGITS, 1)}
    | {"thirty one": 31}
)
DAYPARTS = {  # hours; the ends that common corpora give to them
    "morning": (8, 12),
    "afternoon": (12, 16),
    "evening": (16, 20),
    "night": (20, 24),
}
ASKED_DAYPARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (20, 30)}
"""Hours since midnight, as people use the words: a night goes on."""

SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # first month, northern hemisphere
UNITS = listed("second minute hour day weekend week fortnight month quarter year decade")
_SHORT_UNITS = {"min": "minute", "sec": "second", "hr": "hour"}


def any_of(words: Iterable[str]) -> str:
    """A pattern for any of some words, the longest first; a blank in one may be a hyphen in the text."""
    ordered = sorted((word.replace(" ", r"[-\s]") for word in words), key=len, reverse=True)
    return f"(?:{'|'.join(ordered)})"


MONTH = rf"{any_of([*MONTHS, 'sept', *(name[:3] for name in MONTHS)])}\b\.?"
FULL_WEEKDAY = rf"{any_of(WEEKDAYS)}\b"
WEEKDAY = rf"{any_of([*WEEKDAYS, *listed('tues weds thurs thur'), *(name[:3] for name in WEEKDAYS)])}\b"
NUMBER = rf"(?:\d{{1,4}}|(?:a\s+|the\s+)?(?:couple|few)(?:\s+of)?|{any_of(NUMBERS)})\b"
UNIT = rf"{any_of([*UNITS, *_SHORT_UNITS])}s?\b(?!-)(?!\s+old\b)"
LAST = r"(?:last|past|previous|prior|this\s+past)"
NEXT = r"(?:next|coming|upcoming|following|this\s+coming)"
NTH = any_of([*_SMALL[:5], "last", *listed("1st 2nd 3rd 4th 5th")])
_UNDER_100 = rf"(?:{any_of(_TENS)}(?:[\s-]{any_of(_DIGITS)})?|{any_of(_TEENS)})"
SPOKEN_YEAR = (
    rf"(?:two\s+thousand(?:(?:\s+and)?\s+(?:{_UNDER_100}|{any_of(_DIGITS)}))?"
    rf"|{any_of([*_TEENS[5:], 'twenty'])}\s+(?:hundred\s+(?:and\s+)?)?{_UNDER_100})\b"
)
YEAR = r"(?:1[5-9]\d\d|20\d\d)\b"
_ORDINAL = rf"(?:(?:3[01]|[12]\d|[1-9])(?:st|nd|rd|th)|{any_of(ORDINAL_DAYS)})\b"
DAY = rf"(?=[\dtfsen])(?:(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?|{any_of(_DAY_WORDS)})\b"


def month(word: str) -> int:
    """The number of a month, 1..12, by its name, abbreviation or figures."""
    return int(word) if word.isdigit() else next(i for i, name in enumerate(MONTHS, 1) if name.startswith(word[:3]))


def weekday(word: str) -> int:
    """The number of a weekday, 0 (Monday) to 6, by its name or abbreviation."""
    return next(i for i, name in enumerate(WEEKDAYS) if name.startswith(word[:3]))


def number(word: str) -> float:
    """The count a NUMBER stands for; "half a" is 0.5, "two and a half" 2.5."""
    if word.startswith("half"):
        return 0.5
    word, _, half = word.partition(" and")
    more = 0.5 if half else 0
    if word.isdigit():
        return int(word) + more
    return next((value for vague, value in VAGUE.items() if vague in word), None) or NUMBERS[word] + more


def unit(word: str) -> str:
    """The singular name of a UNIT."""
    word = word.rstrip("s")
    return _SHORT_UNITS.get(word, word)


def day(word: str) -> int:
    """The day of the month of a DAY: "3", "3rd", "twenty third"."""
    return int(word.rstrip("stndrh")) if word[0].isdigit() else _DAY_WORDS[" ".join(re.split(r"[\s-]+", word))]


def direction(word: str) -> int:
    """-1 for "last", 1 for "next", 0 for "this"."""
    return -1 if re.fullmatch(LAST, word) else 1 if re.fullmatch(NEXT, word) else 0


def nth(word: str) -> int:
    """Which one "first", "2nd" or "last" (-1) is."""
    return -1 if word == "last" else day(word)


def _year(word: str) -> int:
    """A year in digits or words; one of two digits ("'19") stays below 100."""
    if word[-1].isdigit():
        return int(word.lstrip("'\u2019"))
    said = [each for each in re.split(r"[\s-]+", word) if each not in ("and", "hundred")]
    century = 2000 if said[:2] == ["two", "thousand"] else 100 * NUMBERS[said[0]]
    return century + sum(NUMBERS[each] for each in said[2 if century == 2000 and said[0] == "two" else 1 :])


_SLOTS: dict[str, tuple[str, Callable[[str], object]]] = {
    "month": (MONTH, month),
    "weekday": (WEEKDAY, weekday),
    "day": (DAY, day),
    "ordinal": (_ORDINAL, day),
    "nth": (NTH, nth),
    "year": (rf"(?:{YEAR}|['\u2019]\d\d\b)", _year),
    "spoken": (rf"(?:{YEAR}|{SPOKEN_YEAR})", _year),
    "count": (rf"(?:{NUMBER}(?:\s+and\s+a\s+half\b)?|half\s+an?\b)", number),
    "unit": (UNIT, unit),
    "which": (rf"(?:{NEXT}|{LAST}|this|(?:the\s+)?(?:same|current))\b", direction),
    "season": (rf"{any_of(SEASONS)}\b", SEASONS.__getitem__),
    "part": (rf"{any_of(DAYPARTS)}\b", str),
    "hour": (rf"(?:\d\d?|{any_of([*_DIGITS, *_TEENS[:3]])}\b)", number),
    "minute": (r"[0-5]\d", int),
    "week": (r"\d\d?\b", int),
    "digits": (r"\d\d?", int),
}


def compile_slots(pattern: str) -> str:
    """The regular expression of a rule: a blank is any white space, "<month>" a slot. A slot whose name ends in a digit
    is a second one of that kind, one whose name ends in "_" the same one at another place."""
    return re.sub(
        r"(?<!P)<([a-z]+)(\d?_?)>",
        lambda name: f"(?P<{name[1]}{name[2]}>{_SLOTS[name[1]][0]})",
        pattern.replace(" ", r"\s+"),
    )


def values(match: re.Match[str]) -> dict[str, object]:
    """The values of the slots of a match, by name; empty slots are left out."""
    by_name = {}
    for name, text in match.groupdict().items():
        if text is not None:
            _, read = _SLOTS.get(name.rstrip("_0123456789"), ("", str))
            by_name[name.rstrip("_")] = read(text)
    return by_name


START_CHARS = 4
_STARTS = [*MONTHS, *WEEKDAYS, *UNITS, *_SHORT_UNITS, *DAYPARTS, *SEASONS, *NUMBERS, *_DAY_WORDS]
_STARTS += listed(
    "jan feb mar apr may jun jul aug sep oct nov dec mon tue wed thu fri sat sun days mins secs hrs"
    " today tomorrow tomm tmrw tmr yesterday tonight overnight noon midday midnight now eod eow eom eoq eoy eob cob"
    " daily nightly annually biweekly bimonthly every each once twice several kw cw wk w q h fy calendar"
    " last past previous prior next coming upcoming following this same current couple few half"
    " in within on at over between early late earlier later rest remainder end close start beginning middle mid latter"
    " very christmas xmas easter thanksgiving halloween boxing new valentine independence earth st veterans black labor"
    " labour memorial mother father good present date bi"
)
STARTS = frozenset(word.split()[0][:START_CHARS] for word in _STARTS)
"""The first letters of the words that a time may begin with: no rule is tried at any other."""
