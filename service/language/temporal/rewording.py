"""Rewrites short forms of times in questions into words that the rules read."""

from __future__ import annotations

import re

from service.language.temporal.words import listed

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_ONE_YEAR = re.compile(
    rf"\b{_MONTH}(?:\s*(?:,\s*(?:and|or)|,|and|or|&)\s*{_MONTH}\b){{1,11}}\s*,?\s*(?P<year>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_NUMBER = r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_SOME_AGO = re.compile(
    rf"\b(?:between\s+)?(?P<less>{_NUMBER})\s*(?:to|or|and|[-\u2013])\s*(?P<more>{_NUMBER})\s+"
    r"(?P<unit>(?:minute|hour|day|week|month|year)s?)\s+ago\b",
    re.IGNORECASE,
)
_NOW = r"(?:now|today|the\s+present(?:\s+day)?)"
_UP_TO = r"(?:to|until|till|up\s+to|through|[-\u2013])"
_GAP, _SOMETHING = r"\s{1,3}", r"[^.?!]{3,60}?"
_TO_NOW = re.compile(
    rf"\b(?:(?:from|since){_GAP}(?P<from>{_SOMETHING}){_GAP}{_UP_TO}|between{_GAP}(?P<between>{_SOMETHING}){_GAP}and)"
    rf"{_GAP}{_NOW}\b"
    rf"|^(?P<bare>{_SOMETHING}){_GAP}{_UP_TO}{_GAP}{_NOW}\s*$",
    re.IGNORECASE,
)
_WORDS = listed("one two three four five six seven eight nine ten eleven twelve")
_AND_A_HALF = re.compile(
    rf"\b(?:(?P<an>an?)\s+(?P<unit>hour|day|week|month|year)\s+and\s+a\s+half"
    rf"|(?P<count>\d{{1,2}}|{'|'.join(_WORDS)})\s+and\s+a\s+half\s+(?P<units>hour|day|week|month|year)s)\b",
    re.IGNORECASE,
)
_SMALLER = {
    "hour": (60, "minutes"),
    "day": (24, "hours"),
    "week": (7, "days"),
    "month": (4, "weeks"),
    "year": (12, "months"),
}
_OVERNIGHT = re.compile(r"\bover\s?night\s*(?=[?.!]*\s*$)", re.IGNORECASE)


def reworded(query: str) -> str:
    """The question with every month of a list in its year ("May and June 2023"), both ends of "3 to 5 days ago",
    what runs up to now as "since", and halves in whole smaller units."""
    query = _ONE_YEAR.sub(_in_one_year, query)
    query = _SOME_AGO.sub(lambda it: f"from {it['more']} {it['unit']} ago to {it['less']} {it['unit']} ago", query)
    query = _TO_NOW.sub(lambda it: f"since {it['from'] or it['between'] or it['bare']}", query)
    query = _AND_A_HALF.sub(_whole_units, query)
    return _OVERNIGHT.sub("last night", query)


def _whole_units(told: re.Match[str]) -> str:
    """ "a year and a half" is 18 months."""
    word = (told["count"] or "one").lower()
    count = int(word) if word.isdigit() else _WORDS.index(word) + 1
    size, unit = _SMALLER[(told["unit"] or told["units"]).lower()]
    return f"{count * size + size // 2} {unit}"


def _in_one_year(listed: re.Match[str]) -> str:
    year = listed["year"]
    return re.sub(rf"\b({_MONTH})\b(?!\s*,?\s*{year})", rf"\1 {year}", listed.group(), flags=re.IGNORECASE)
