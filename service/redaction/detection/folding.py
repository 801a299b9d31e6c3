"""Folds look-alikes to the characters they look like: digits of any script, a Cyrillic letter in a key.

Characters are judged by their Unicode properties; only letters of other alphabets that look Latin are listed. Folding
is only for detection: findings are cut out of the original text, and a text without findings is unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from service.redaction.detection.findings import Finding

# Cyrillic and Greek letters that nobody can tell from Latin ones (of Unicode's confusables), the minus and slashes.
_CONFUSABLE = dict(
    zip(
        "АВЕКМНОРСТУХЅІЈаеорсухѕіјһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧαορυν\u2212\u2044\u2215\u29f8",
        "ABEKMHOPCTYXSIJaeopcyxsijhdqwABEZHIKMNOPTYXaopuv-///",
        strict=True,
    )
)
# Dashes between words, a sound sign and a ruled line: only between digits do they stand for a hyphen.
_LONG = "\u2014\u2015\u2e3a\u2e3b\u30fc\u2500"
_LONG_BETWEEN_DIGITS = re.compile(f"(?<=[0-9])[{_LONG}](?=[0-9])")
_FILLERS = "\u115f\u1160"  # letters without a form
_MARKS = frozenset({"Mn", "Me"})  # accents, enclosing keys and circles, variation selectors
_UNSEEN = _MARKS | {"Cf"}  # joiners, marks of direction, soft hyphens, tags


@lru_cache(maxsize=4_096)
def _plain(char: str) -> str:
    """The character that this one looks like, or none if it is invisible next to others."""
    compatible = unicodedata.normalize("NFKC", char)
    char = compatible if len(compatible) == 1 else char
    kind = unicodedata.category(char)
    if kind in _UNSEEN or char in _FILLERS:
        return ""
    digit = unicodedata.digit(char, None)
    if digit is not None:
        return str(digit)
    return "-" if kind == "Pd" and char not in _LONG else _CONFUSABLE.get(char, char)


def fold(text: str) -> tuple[str, list[int] | None]:
    """The folded text, and the place of each of its characters in `text`; None if all places are equal."""
    if text.isascii():
        return text, None
    forms = {char: _plain(char) for char in set(text) if not char.isascii()}
    plain = text.translate({ord(char): form for char, form in forms.items() if form != char})
    plain = _LONG_BETWEEN_DIGITS.sub("-", plain)
    if len(plain) == len(text):
        return plain, None
    return plain, [place for place, char in enumerate(text) if forms.get(char, char)]


def unfold(text: str, findings: Iterable[Finding], places: list[int] | None) -> tuple[Finding, ...]:
    """The findings at their places in the original text, including marks on their last character."""
    if places is None:
        return tuple(findings)
    return tuple(Finding(places[item.start], _end(text, places[item.end - 1]), item.label) for item in findings)


def _end(text: str, last: int) -> int:
    end = last + 1
    while end < len(text) and unicodedata.category(text[end]) in _MARKS:
        end += 1
    return end
