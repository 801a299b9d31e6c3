"""Telephone numbers.

Three degrees of proof. An international number, or the American 3-3-4, shows it by its form. A national number with
its trunk zero counts when the numbering plan of some country agrees (phonenumbers knows them). Everything shorter
or plainer, down to six digits, needs a word before or after that says so: "call me at", "Fax:", "... mobile".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import phonenumbers

from service.redaction.detection import phone_cues
from service.redaction.detection.findings import PHONE, Finding

_EXTENSION = r"(?:[ ,;]{0,2}(?:x|ext\.?|extension|extn\.?|durchwahl|#)[ .:]{0,2}\d{1,6})?"
_CANDIDATE = re.compile(
    r"(?<![\w.$\u20ac\u00a3\u00a5@%+])(?:\+ ?)?\(?\+?\d(?:[ .\-/()\u00a0\u2010-\u2013]{0,3}\d){5,17}"
    + _EXTENSION
    + r"(?![A-Za-z_@%\u20ac\u00a3$]|[-.:/,]?\d)",
    re.I,
)
_NANP = re.compile(
    r"(?:\+?1[-. ]{0,2}|001[-. ]|011[-. ])?(?:\([2-9]\d\d\)[-. ]{0,2}|[2-9]\d\d([-. ]))\d{3}[-. ]\d{4}(?!\d)"
)
_WITH_AREA = re.compile(r"\((?!(?:19|20)\d\d\))0?\d{2,4}\)[ -]?\d{2,4}(?:[ -]\d{2,4}){1,3}(?!\d)")
_TRUNK = re.compile(r"(?!\d{5}-\d{4}$)0[1-9]\d{0,4}(?:[ ./\-\u2013]\d{2,8}){1,4}$|0[1-9]\d{2,3}[ /-]\d{5,8}$")
# Countries whose national numbers begin with a zero and are written with blanks, slashes or dots.
_REGIONS = (
    "GB", "FR", "DE", "BE", "NL", "AT", "CH", "IT", "SE", "FI", "AU", "NZ", "JP", "IN", "ZA", "IE", "TR", "BR", "IL",
    "PK",
)  # fmt: skip
_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:19|20)\d\d"
_DATE = re.compile(
    rf"(?:{_YEAR}[-/. ]{_MONTH}[-/. ]{_DAY}|{_DAY}[-/.]{_DAY}[-/.](?:{_YEAR}|\d\d)|{_YEAR} ?[-/\u2013] ?{_YEAR})"
    r"(?![-/.\d]\d)"
)


def find(text: str) -> Iterator[Finding]:
    """Telephone and fax numbers with their extension."""
    for match in _CANDIDATE.finditer(text):
        start, end = match.span()
        while text[start] == "(" and ")" not in text[start:end]:
            start += 1
        if _is_phone(text, start, end):
            yield Finding(start, end, PHONE)


def _is_phone(text: str, start: int, end: int) -> bool:
    if _DATE.match(text, start, end) or _is_part_of_a_name(text, start):
        return False
    if phone_cues.speak_for(text, start, end):
        return True
    return not phone_cues.speak_against(text, start) and _has_dialling_form(text[start:end])


def _is_part_of_a_name(text: str, start: int) -> bool:
    """True behind a hyphen or slash that ties the digits to letters or digits: PO-123456, posts/123456."""
    return start >= 2 and text[start - 1] in "-/" and text[start - 2].isalnum()


def _has_dialling_form(candidate: str) -> bool:
    number = re.split(r"(?i)[ ,;]{0,2}(?:x|e|d|#)", candidate, maxsplit=1)[0]
    digits = re.sub(r"\D", "", number)
    if candidate.lstrip("( ").startswith("+"):
        return 8 <= len(digits) <= 15 and digits[0] != "0" and _is_dialable("+" + digits, None)
    if len(digits) > 15:
        return False
    if _NANP.fullmatch(number):
        return True
    if _WITH_AREA.fullmatch(number):
        return 8 <= len(digits) <= 12
    if number.startswith("00") and len(digits) >= 10 and re.search(r"[ ./-]", number):
        return _is_dialable("+" + digits[2:], None)
    trunk = _TRUNK.fullmatch(number) and 9 <= len(digits) <= 12
    return bool(trunk) and any(_is_dialable(digits, region) for region in _REGIONS)


def _is_dialable(number: str, region: str | None) -> bool:
    try:
        parsed = phonenumbers.parse(number, region)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_possible_number(parsed) if region is None else phonenumbers.is_valid_number(parsed)
