"""Words of time, and what they count.

Everything is matched on lower-cased English text. Fragments are plain regular expressions without capturing groups,
so that rules can put them into groups of their own.
"""

from __future__ import annotations

import re

listed = str.split  # a list of words reads better as one string
MONTHS = listed("january february march april may june july august september october november december")
WEEKDAYS = listed("monday tuesday wednesday thursday friday saturday sunday")  # index as in date.weekday()

NUMBERS = {
    word: value
    for value, word in enumerate(
        listed(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty"
        )
    )
} | {"a": 1, "an": 1, "thirty": 30, "forty": 40, "forty-five": 45, "fifty": 50, "sixty": 60, "ninety": 90}
VAGUE = {"couple": 2, "few": 3}  # "a few days": the count everybody can live with

ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
DAYPARTS = {  # hours; the ends that common corpora give to them
    "morning": (8, 12),
    "afternoon": (12, 16),
    "evening": (16, 20),
    "night": (20, 24),
    "tonight": (20, 24),
    "tonite": (20, 24),
}
ASKED_DAYPARTS = {  # hours since midnight, as people use the words: a night goes on
    "morning": (5, 12),
    "afternoon": (12, 18),
    "evening": (17, 24),
    "night": (20, 30),
    "tonight": (20, 30),
    "tonite": (20, 30),
}
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # first month, northern hemisphere

MONTH = (
    r"(?:january|february|march|april|june|july|august|september|october|november|december|may"
    r"|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\b\.?"
)
WEEKDAY = (
    r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tues|tue|weds|wed|thurs|thur|thu|fri|sat|sun)\b"
)
NUMBER = (
    r"(?:\d{1,4}|(?:a\s+|the\s+)?(?:couple|few)(?:\s+of)?|an?|forty-five|one|two|three|four|five|six|seven|eight|nine"
    r"|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty"
    r"|sixty|ninety)\b"
)
HALF = r"half\s+an?\b"
UNIT = r"(?:fortnight|weekend|quarter|decade|minute|second|month|week|year|hour|days?|min|sec|hr)s?\b(?!-)(?!\s+old\b)"
LAST = r"(?:last|past|previous|prior|this\s+past)"
NEXT = r"(?:next|coming|upcoming|following|this\s+coming)"
YEAR = r"(?:1[5-9]\d\d|20\d\d)\b"
_SMALL = listed("first second third fourth fifth sixth seventh eighth ninth")
_TEENS = listed("tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth")
DAY_WORDS = {
    **{word: value for value, word in enumerate((*_SMALL, *_TEENS, "twentieth"), 1)},
    **{f"twenty {word}": 20 + value for value, word in enumerate(_SMALL, 1)},
    "thirtieth": 30,
    "thirty first": 31,
    **{word: value for word, value in NUMBERS.items() if 13 <= value <= 20},
    "thirty": 30,
    **{f"twenty {word}": 20 + value for word, value in NUMBERS.items() if 1 <= value <= 9 and len(word) > 2},
    "thirty one": 31,
}
_ONES = "|".join(word for word, value in NUMBERS.items() if 1 <= value <= 9 and len(word) > 2)
_SPOKEN = (  # the letter ahead spares most words some seventy tries
    rf"(?=[tfsen])(?:twent(?:ieth|y(?:[\s-](?:{'|'.join(_SMALL)}|{_ONES}))?)|thirt(?:ieth|y(?:[\s-](?:first|one))?|een(?:th)?)"
    rf"|(?:four|fif|six|seven|eigh|nine)teen(?:th)?|tenth|eleventh|twelfth|{'|'.join(_SMALL)})"
)
DAY = rf"(?=[\dtfsen])(?:(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?|{_SPOKEN})\b"
DAYPART = r"(?:morning|afternoon|evening|night)\b"


def month(word: str) -> int:
    """1..12 for a month name or its abbreviation."""
    stem = word.strip(" .")[:3]
    return next(i for i, name in enumerate(MONTHS, 1) if name.startswith(stem))


def weekday(word: str) -> int:
    """0 (Monday) .. 6 for a weekday or its abbreviation."""
    stem = word.strip()[:3]
    return next(i for i, name in enumerate(WEEKDAYS) if name.startswith(stem))


def number(word: str) -> int:
    """The count a NUMBER stands for."""
    word = word.strip()
    if word.isascii() and word.isdigit():
        return int(word)
    for vague, value in VAGUE.items():
        if vague in word:
            return value
    return NUMBERS[word]


def unit(word: str) -> str:
    """The singular name of a UNIT: second, minute, hour, day, week, fortnight, month, quarter, year, decade ..."""
    word = word.strip().rstrip("s")
    return {"min": "minute", "sec": "second", "hr": "hour"}.get(word, word)


def day(word: str) -> int:
    """The day of the month of a DAY: "3", "3rd", "twenty third"."""
    word = word.strip().replace("-", " ")
    return int(word.rstrip("stndrh")) if word[0].isdigit() else DAY_WORDS[" ".join(word.split())]


def short_year(digits: str, pivot: int) -> int:
    """The year of two digits: this century up to 30 years after `pivot` (the reference's year), else the last one."""
    year = pivot // 100 * 100 + int(digits)
    return year if year <= pivot + 30 else year - 100


_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_CENTURIES = {"fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20}
_UNDER_20 = [word for word, value in NUMBERS.items() if 1 <= value <= 19 and len(word) > 2]
_UNDER_100 = rf"(?:(?:{'|'.join(_TENS)})(?:[\s-](?:{'|'.join(_UNDER_20[:9])}))?|{'|'.join(_UNDER_20[9:])})"
SPOKEN_YEAR = (
    rf"(?:two\s+thousand(?:\s+and)?\s+(?:{_UNDER_100}|{'|'.join(_UNDER_20[:9])})\b"
    rf"|(?:{'|'.join(_CENTURIES)})\s+(?:hundred\s+(?:and\s+)?)?{_UNDER_100}\b|two\s+thousand\b)"
)


def spoken_year(text: str) -> int:
    """The year of a SPOKEN_YEAR: "two thousand and five" is 2005, "nineteen ninety three" 1993."""
    said = [word for word in re.split(r"[\s-]+", text.strip()) if word not in ("and", "hundred")]
    if said[:2] == ["two", "thousand"]:
        year, said = 2000, said[2:]
    else:
        year, said = _CENTURIES[said[0]] * 100, said[1:]
    return year + sum(_TENS.get(word) or NUMBERS[word] for word in said)
