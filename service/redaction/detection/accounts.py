"""Bank account numbers (IBAN) and social security numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.redaction.detection.cards import SIX_DIGITS
from service.redaction.detection.findings import IBAN, SSN, Finding

# Country and total length (SWIFT IBAN registry, release 99).
_IBAN_LIST = """
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24
    FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32
    LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24
    RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30
    AO25 BF28 BJ28 CF27 CG27 CI28 CM27 CV25 DZ26 GA27 GQ27 GW25 IR26 KM27 MA28 MG27 ML28 MZ25 NE28 SN28 TD27 TG28
"""
_IBAN_LENGTHS = {item[:2]: int(item[2:]) for item in _IBAN_LIST.split()}
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?=[ -]?[A-Za-z0-9])")
_IBAN_WORD = re.compile(r"(?i)\biban\b[^\n]{0,20}$")

_SSN = re.compile(
    r"(?<![\w.+/-])(?<!\+\d )(?<!\+\d\d )(?<!\+\d{3} )(\d{3})([- .\u2010-\u2015])(\d{2})\2(\d{4})(?![\w/]|[-.]\d)"
)
_SSN_BARE = re.compile(
    r"(?i)\b(?:ssn|ssns|social security|soc(?:ial)? sec(?:urity)?|social|itin|tin|sin)\b"
    r"(?:[ _]?(?:number|no|num|nr|#))?\W{0,3}"
    r"(?:(?:is|was|ends?|:|=)\W{0,3})?(\d{3}[- .]?\d{2,3}[- .]?\d{3,4})(?!\w|[-.]?\d)"
)


def find(text: str) -> Iterator[Finding]:
    """IBANs by length and check digits (mod 97), social security numbers by area, group and serial."""
    if SIX_DIGITS.search(text):
        yield from _ibans(text)
        yield from _ssns(text)


def mod97(iban: str) -> bool:
    """True when the check digits of an upper-case IBAN without spaces hold (ISO 7064)."""
    return int("".join(str(int(char, 36)) for char in iban[4:] + iban[:4])) % 97 == 1


def _ibans(text: str) -> Iterator[Finding]:
    for match in _IBAN.finditer(text):
        length = _IBAN_LENGTHS.get(match.group()[:2].upper())
        if length is None:
            continue
        end = _end_of_account(text, match.start(), length)
        if end is None:
            continue
        compact = re.sub(r"[ -]", "", text[match.start() : end]).upper()
        if mod97(compact) or _IBAN_WORD.search(text, max(0, match.start() - 30), match.start()):
            yield Finding(match.start(), end, IBAN)


def _end_of_account(text: str, start: int, count: int) -> int | None:
    """Where `count` ASCII letters and digits from `start` end, single blanks or hyphens between; None if cut off."""
    seen, position = 0, start
    while position < len(text) and seen < count:
        char = text[position]
        if char.isascii() and char.isalnum():
            seen += 1
        elif char not in " -" or not text[position - 1].isalnum():
            return None
        position += 1
    if seen < count or (position < len(text) and text[position].isalnum()):
        return None
    return position


def _ssns(text: str) -> Iterator[Finding]:
    for match in _SSN.finditer(text):
        if _is_ssn(match[1], match[3], match[4]):
            yield Finding(match.start(), match.end(), SSN)
    low = text.lower()
    if any(word in low for word in ("ss", "soc", "tin", "sin")):
        for match in _SSN_BARE.finditer(text):
            digits = re.sub(r"\D", "", match[1])
            if len(digits) == 9 and len(set(digits)) > 1:
                yield Finding(match.start(1), match.end(1), SSN)


def _is_ssn(area: str, group: str, serial: str) -> bool:
    """The ranges the Social Security Administration issues, and the IRS' ITIN (900-999 with groups 50 to 99)."""
    if area in {"000", "666"} or group == "00" or serial == "0000":
        return False
    return area < "900" or group >= "50"
