"""The values in a text, by kind: times, dates, weekdays, amounts, addresses, versions, names and figures.

Two values are of one kind if one can replace the other: "14:20" and "16:20", "Tuesday" and "Thursday",
"54 euros" and "47 euros".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from service.language.temporal.words import NUMBERS, ORDINAL_DAYS

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_UNIT = (
    r"%|percent|euros?|dollars?|pounds?|k|km|kg|cm|mm|m|g|lbs?|ml|l|mb|gb|tb|ms|s|sec(?:ond)?s?|min(?:ute)?s?"
    r"|h(?:ours?|rs?)?"
    r"|days?|weeks?|months?|years?|people|guests|persons?|pages?|lessons?|times"
)
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("email", r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    ("date", rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}\b(?: \d{{4}})?|{_MONTH} \d{{1,2}}(?:st"
             rf"|nd|rd|th)?\b"
     r"|the \d{1,2}(?:st|nd|rd|th)\b|\d{1,2}(?:st|nd|rd|th)\b"),
    ("time", r"\d{1,2}[:.]\d\d\s?(?:[ap]\.?m\.?)?(?!\d|\.\d)|\d{1,2}\s?[ap]\.?m\b|(?:at|by|till"
             r"|until) \d{1,2}(?:\s?o['\u2019]clock)?(?![\d.,:]|\s?\w)|noon|midnight"),
    ("weekday", r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|today|tomorrow"),
    ("money", r"[$\u20ac\u00a3\u00a5]\s?\d[\d.,]*k?|\d[\d.,]*k?\s?(?:[$\u20ac\u00a3\u00a5]|euros?\b|dollars?\b"
              r"|pounds?\b|eur\b|usd\b|gbp\b|z\u0142)"),
    ("version", r"v?\d+\.\d+(?:\.\d+)*(?:-\w+)?"),
    ("year", r"(?:19|20)\d\d"),
    ("number", rf"\d[\d,]*(?:\.\d+)?(?:\s?(?:{_UNIT})\b)?"),
)  # fmt: skip
_VALUE = re.compile("|".join(rf"(?P<{kind}>(?<![\w.@]){pattern})" for kind, pattern in _PATTERNS), re.IGNORECASE)
_NAME = re.compile(
    r"(?<![.!?:\"\u201c]\s)(?<!^)\b[A-Z][\w\u00c0-\u024f'\u2019-]*(?:\s(?:of |de |van )?[A-Z][\w'\u2019-]*)*"
)
_FIGURE = re.compile(r"(?<![\w.])[-\u2212+]?\d+(?:[.,:]\d+)*")
_HALF_OF_DAY = re.compile(r"(?i)\d\s?([ap])\.?m\b")
_LETTERS = re.compile(r"[^\W\d_]+")
_OTHER_WORDS = """hundred=100 thousand=1000 million=1000000 billion=1000000000 dozen=12 half=0.5 once=1 twice=2
    double=2 both=2 thrice=3 triple=3"""
_IN_DIGITS = {
    word: str(value) for word, value in (NUMBERS | ORDINAL_DAYS).items() if word not in ("a", "an", "one")
} | dict(pair.split("=") for pair in _OTHER_WORDS.split())
"""Without "one", mostly a pronoun or an article: "the one", "one dog" for "a dog"."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value at a half-open span. `key`: what makes it equal to another of its kind."""

    kind: str
    start: int
    end: int
    key: str


def find(text: str) -> list[Value]:
    """The figures, times and addresses of a text in order, without names."""
    return [
        Value(match.lastgroup or "", match.start(), match.end(), _key(match.group())) for match in _VALUE.finditer(text)
    ]


def names(text: str) -> list[Value]:
    """Runs of capitalised words inside sentences."""
    return [
        Value("name", match.start(), match.end(), _key(match.group()))
        for match in _NAME.finditer(text)
        if match.group() not in {"I", "OK"} and not re.match(r"I['\u2019]", match.group())
    ]


def find_replacement(given: Sequence[Value], text: str) -> Value | None:
    """The one value of a text that replaces one of the given ones: a different one of its kind."""
    values = find(text)
    for value in given:
        kinds = ("number", "money") if value.key.isdigit() else (value.kind,)  # "Sorry, 350."
        meant = [other for other in values if other.kind in kinds]
        if len(meant) == 1 and meant[0].key != value.key:
            return meant[0]
    return None


def _key(value: str) -> str:
    return re.sub(r"[\s.,]+$|^(?:at|by|till|until|the) ", "", value.casefold()).replace(",", "")


def figures(text: str) -> set[str]:
    """Every figure, in digits or words, as digits: "1,000", "twice", "2nd", "-5"; "a" or "p" of "6 am", "6 pm"."""
    digits = {each.lstrip("+").replace("\u2212", "-").replace(",", "") for each in _FIGURE.findall(text)}
    digits |= {half.casefold() for half in _HALF_OF_DAY.findall(text)}
    return digits | {_IN_DIGITS[word] for word in _LETTERS.findall(text.casefold()) if word in _IN_DIGITS}
