"""Which times in a question are told in fewer words than our rules read? The same in words that they do read."""

from __future__ import annotations

import re

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
_THE_SAME_DAY = re.compile(r"\bago\s+today\b", re.IGNORECASE)


def reworded(query: str) -> str:
    """The question with every month of a list in its year ("May and June 2023"), both ends of "3 to 5 days ago", and
    what runs up to now as "since"."""
    query = _ONE_YEAR.sub(_in_one_year, query)
    query = _SOME_AGO.sub(lambda it: f"from {it['more']} {it['unit']} ago to {it['less']} {it['unit']} ago", query)
    query = _TO_NOW.sub(lambda it: f"since {it['from'] or it['between'] or it['bare']}", query)
    return _THE_SAME_DAY.sub("ago", query)


def _in_one_year(listed: re.Match[str]) -> str:
    year = listed["year"]
    return re.sub(rf"\b({_MONTH})\b(?!\s*,?\s*{year})", rf"\1 {year}", listed.group(), flags=re.IGNORECASE)
