"""Whether one text is a later edition of another: by what it says it replaces, by its version or its date.

Documents say so themselves: "Supersedes ADR-012", "Status: replaced by POL-240", "Runbook, version 3", "Price list of
1 July 2024". What is compared stands at the beginning of a text, where its title is. English. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from service.language.lexemes import lexemes

HEAD_CHARS: Final = 160
"""A title with its version or date stands within so many characters."""

READ_CHARS: Final = 2_000
"""Of a longer text only the beginning is searched for what it replaces."""

TITLE_OVERLAP: Final = 0.6
"""Two titles are of one document from this share of common words (Jaccard) on."""

_DIGIT: Final = re.compile(r"\d")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_EDITION: Final = r"(?:v|ver\.?|version|rev\.?|revision|edition|issue|draft|release)"
_VERSION: Final = re.compile(
    rf"\b{_EDITION}[ :#]*(\d{{1,4}}(?:\.\d{{1,4}}){{0,3}})\b"
    r"|\b(\d{1,3})(?:st|nd|rd|th) (?:edition|revision|version|issue|draft)\b|\b(\d{1,3}\.\d{1,3}\.\d{1,3})\b",
    re.IGNORECASE,
)
_DATE: Final = re.compile(
    rf"\b(?P<y1>(?:19|20)\d\d)-(?P<m1>\d\d)(?:-(?P<d1>\d\d))?(?!\w)"
    rf"|\b(?:(?P<d2>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?)?(?P<m2>{_MONTH}) (?:(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?,? )?"
    r"(?P<y2>(?:19|20)\d\d)\b|\b(?P<y3>(?:19|20)\d\d)(?:/\d\d(?:\d\d)?)?(?!\w)",
    re.IGNORECASE,
)
_DATING: Final = re.compile(
    r"\b(?:effective|valid|dated|(?:last )?(?:updated|changed|revised|reviewed)|as of|from|of|on|since|date)\W*$"
    r"|^\W*(?:as of|from|since|in|on)\W*$",
    re.IGNORECASE,
)
_TITLE_ENDS: Final = re.compile(r"[)\]]?\s*(?:[:.\n|\u2013\u2014]|-\s|$)")
_SENTENCE_END: Final = re.compile(r"[.!?](?:\s|$)|\n")
_NAME: Final = re.compile(
    rf"\b(?!(?:{_EDITION}|{_MONTH})\b)([A-Za-z]{{1,20}})[- #]{{0,2}}(\d+(?:[-.]\d+)*)\b", re.IGNORECASE
)
_NAMES: Final = r"(?:the )?[A-Za-z]{1,20}[- #]{0,2}\d[\w.-]*(?:(?:, | and | & )[A-Za-z]{1,20}[- #]{0,2}\d[\w.-]*)*"
_CUES: Final = (
    *("supersed", "replac", "obsolet", "overrid", "place of", "instead of", "successor", "deprecat", "withdrawn"),
    *("outdated", "no longer valid"),
)
_REPLACES: Final = re.compile(
    r"\b(?:supersed(?:es?|ing)|replac(?:es?|ing)|obsolet(?:es?|ing)|overrid(?:es?|ing)|in place of|instead of"
    rf"|takes the place of|successor (?:of|to))[\s:]+({_NAMES})"
    rf"|({_NAMES}) (?:is|are) (?:\w+ )?(?:superseded|replaced|obsolete|withdrawn|no longer valid)(?! by)",
    re.IGNORECASE,
)
_REPLACED: Final = re.compile(
    r"\b(?:superseded|replaced|obsoleted|overridden|deprecated|withdrawn|outdated)\W{1,3}"
    rf"(?:by|in favou?r of|see|use)[\s:]+({_NAMES})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Edition:
    """What a text says of itself. `head`: its beginning; `title`: the lexemes there beside version and date; `version`
    and `date`: as comparable numbers, empty where not told; `replaces`, `replaced_by`: names of others ("adr 12")."""

    head: str
    title: frozenset[str]
    version: tuple[int, ...]
    date: tuple[int, ...]
    replaces: frozenset[str]
    replaced_by: frozenset[str]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names at the beginning that may be its own."""
        return _names([self.head]) - self.replaces - self.replaced_by


def edition(text: str) -> Edition | None:
    """The edition of a text; None where it can be none, as with most texts."""
    head, body = text[:HEAD_CHARS], text[:READ_CHARS].lower()
    replaces = replaced_by = frozenset[str]()
    if any(cue in body for cue in _CUES):
        replaces = _names(found[1] or found[2] for found in _REPLACES.finditer(body))
        replaced_by = _names(found[1] for found in _REPLACED.finditer(body))
    if not replaces and not replaced_by and _DIGIT.search(head) is None:
        return None
    version, date = _VERSION.search(head), _DATE.search(head)
    marks = [found.span() for found in (version, date) if found]
    return Edition(
        head,
        _title(head, min(marks)) if marks else frozenset(),
        _numbers(next(filter(None, version.groups()))) if version else (),
        _day(date) if date else (),
        replaces,
        replaced_by,
    )


def is_later(one: Edition, other: Edition) -> bool:
    """Returns whether one takes the place of the other: it says so, or both are editions of one document and its
    version, else its date, is later."""
    if _replaces(one, other):
        return True
    if _replaces(other, one) or not _is_same(one.title, other.title):
        return False
    if one.version and other.version and one.version != other.version:
        return one.version > other.version
    return bool(one.date and other.date) and one.date > other.date


def _replaces(one: Edition, other: Edition) -> bool:
    of_one = bool(one.replaces) and not one.replaces.isdisjoint(other.names)
    return of_one or (bool(other.replaced_by) and not other.replaced_by.isdisjoint(one.names))


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one & other) and len(one & other) >= TITLE_OVERLAP * len(one | other)


def _title(head: str, mark: tuple[int, int]) -> frozenset[str]:
    """What stands before the version or date, as a title does; else, as in "As of May 2024 ...", its sentence."""
    before, after = _DATING.sub("", head[: mark[0]]), head[mark[1] :]
    title = frozenset(lexemes(before))
    if title and (len(title) > 1 or _TITLE_ENDS.match(after)):
        return title
    end = _SENTENCE_END.search(after)
    return title | frozenset(lexemes(after[: end.start()] if end else after))


def _names(texts: Iterable[str]) -> frozenset[str]:
    """The names in texts, written in one way: ADR-012 and "adr 12" are equal."""
    found = (each for text in texts for each in _NAME.findall(text))
    return frozenset(f"{word.lower()} {'.'.join(map(str, _numbers(number)))}" for word, number in found)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.split(r"[-.]", text))


def _day(found: re.Match[str]) -> tuple[int, ...]:
    year = found["y1"] or found["y2"] or found["y3"]
    month = int(found["m1"]) if found["m1"] else _MONTHS.index(found["m2"][:3].lower()) + 1 if found["m2"] else None
    day = found["d1"] or found["d2"] or found["d3"]
    return (int(year), *([month] if month else []), *([int(day)] if day else []))
