"""Numbers of payment cards, bank accounts (IBAN) and social security."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.redaction.detection.findings import CREDIT_CARD, IBAN, SSN, Finding

_LOOK_BACK_CHARS = 48
CARD_DIGITS = 12, 19
"""The least and the most digits of a card number (ISO/IEC 7812)."""

_SIX_DIGITS = re.compile(r"\d(?:\D{0,4}\d){5}")
"""Six digits close together: every card and account number has them, and hardly any sentence."""

# Twelve digits and more, single blanks, hyphens or dots between; an expiry date or a check number may follow.
_CARD_RUN = re.compile(r"(?<![\w.+#])(?<!\d[-/])\d(?>(?:[ .-]?\d){11,39})(?!\w)")
_SLASHED = re.compile(r"(?<![\w.+#/-])\d{4}/(?:\d{4}/\d{4}/\d{4}|\d{6}/\d{4,5})(?!\w|/\d)")
_GROUP = re.compile(r"\d+")
_GROUPINGS = {
    (4, 4, 4, 4),
    (4, 4, 4, 4, 3),
    (4, 6, 5),
    (4, 6, 4),
    (4, 4, 4, 1),
    (4, 4, 4, 2),
    (4, 4, 4, 3),
    (4, 4, 5),
    (6, 13),
}
_CARD_WORD = re.compile(
    r"(?i)(?:\bcards?\b|\bcc\b|\bcredit\b|\bdebit\b|\bvisa\b|\bmaster ?card\b|\bamex\b|\bamerican express\b|"
    r"\bmaestro\b|\bdiscover\b|\bdiners\b|\bjcb\b|\bunionpay\b|\bkarte\b|\bkreditkarte\b|\btarjeta\b|\bcarte\b|card_?n|_card|ccn)"
)
_CARD_CLOSE = re.compile(
    r"(?i)(?:card|credit|debit|visa|\bcc|ccn|amex|maestro)[\w ]{0,16}"
    r"(?:\b(?:is|no|nr|num|number|was)\b)?[\W_]{0,4}$"
)
# A number with a telling form.
_OTHER_NUMBER = re.compile(
    r"(?i)\b(?:order|invoice|tracking|isbn|ean|gtin|upc|sku|serial|imei|imsi|iccid|ticket|case|ref(?:erence)?|"
    r"parcel|shipment|barcode|issn|doi|part|model|build|commit|timestamp|epoch|bytes?|transaction|tweet|status|id|uid|sha\d*)"
    r"(?: ?(?:id|no|nr|num|number|code))?\b[\s#:.=\"'-]{0,5}$"
)
_MASKED = re.compile(r"(?<!\w)\d{4}(?:[ -]?[*xX\u2022]{4}){2}[ -]?[*xX\u2022]{0,4}[ -]?\d{3,4}(?!\w)")
_CVV = re.compile(
    r"(?i)\b(?:cvv2?|cvc2?|card security code|card verification (?:code|value))\b"
    r"\W{0,3}(?:is |was |number |code )?\W{0,2}(\d{3,4})(?!\d)"
)

# First digits of the issuer and the lengths in use (ISO/IEC 7812 and the networks' pages).
_ISSUERS: tuple[tuple[re.Pattern[str], frozenset[int]], ...] = tuple(
    (re.compile(prefix), frozenset(lengths))
    for prefix, lengths in (
        (r"4", (13, 16, 19)),  # Visa
        (r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720", (16,)),  # Mastercard
        (r"3[47]", (15,)),  # American Express
        (r"6011|64[4-9]|65", (16, 17, 18, 19)),  # Discover
        (r"30[0-5]|3095|36|3[89]", (14, 16, 19)),  # Diners
        (r"35(?:2[89]|[3-8])", (16, 17, 18, 19)),  # JCB
        (r"1800|2131", (15,)),  # JCB, old
        (r"62|81", (16, 17, 18, 19)),  # UnionPay
        (r"50[0-9]|5[6-8]|6304|6390|67|0604", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
        (r"220[0-4]|60|82|9792|5067|4011|6362", (16,)),  # Mir, RuPay, Troy, Elo
    )
)
# Lengths that barcodes and ids have too; these need a word about cards nearby.
_AMBIGUOUS_LENGTHS = frozenset({12, 13, 17, 18})

# Country and total length (SWIFT IBAN registry, release 99).
_IBAN_LIST = """
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24
    FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32
    LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24
    RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30
    AO25 BF28 BJ28 CF27 CG27 CI28 CM27 CV25 DZ26 GA27 GQ27 GW25 IR26 KM27 MA28 MG27 ML28 MZ25 NE28 SN28 TD27 TG28
"""
_IBAN_LENGTHS = {item[:2]: int(item[2:]) for item in _IBAN_LIST.split()}
_IBAN = re.compile(r"(?<![A-Za-z0-9])(?<![0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-)[A-Za-z]{2}\d{2}(?=[ -]?[A-Za-z0-9])")
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
    """Card numbers by issuer and Luhn check digit, or by the words before them, masked numbers and check codes; IBANs
    by length and check digits (mod 97); social security numbers by area, group and serial."""
    yield from find_cards(text)
    if _SIX_DIGITS.search(text):
        yield from _ibans(text)
        yield from _ssns(text)


def find_cards(text: str) -> Iterator[Finding]:
    """What `find` finds of cards."""
    yield from _parts_of_cards(text)
    if _SIX_DIGITS.search(text):
        yield from _cards(text)


def luhn(digits: str) -> bool:
    """True when the last digit is the Luhn check digit of the others."""
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    total = sum(map(int, digits[-1::-2])) + sum(value - 9 if value > 9 else value for value in doubled)
    return total % 10 == 0


def _cards(text: str) -> Iterator[Finding]:
    for run in (*_CARD_RUN.finditer(text), *_SLASHED.finditer(text)):
        before = text[max(0, run.start() - _LOOK_BACK_CHARS) : run.start()]
        named = _CARD_WORD.search(before) or _CARD_WORD.search(text, run.end(), run.end() + 20)
        span = _card_in(text, run, before, named=named is not None)
        if span is not None:
            yield Finding(*span, CREDIT_CARD)


def _parts_of_cards(text: str) -> Iterator[Finding]:
    """Masked numbers and check codes."""
    if any(mask in text for mask in ("**", "xx", "XX", "\u2022\u2022")):
        for match in _MASKED.finditer(text):
            if _CARD_WORD.search(text, max(0, match.start() - _LOOK_BACK_CHARS), match.start()):
                yield Finding(match.start(), match.end(), CREDIT_CARD)
    if "cv" in text or "CV" in text or "verification" in text:
        for match in _CVV.finditer(text):
            yield Finding(match.start(1), match.end(1), CREDIT_CARD)


def _card_in(text: str, run: re.Match[str], before: str, *, named: bool) -> tuple[int, int] | None:
    """The first groups within the run that make a card number, the longest first."""
    groups = [group.span() for group in _GROUP.finditer(text, run.start(), run.end())]
    for first in range(min(len(groups), 6)):
        if first and not text[groups[first][0] - 1].isspace():
            continue  # the decimals of 0.4111111111111111
        for last in range(min(len(groups), first + 5), first, -1):
            sizes = tuple(end - start for start, end in groups[first:last])
            if not CARD_DIGITS[0] <= sum(sizes) <= CARD_DIGITS[1]:
                continue
            digits = "".join(text[start:end] for start, end in groups[first:last])
            if _is_card(digits, sizes, before, named=named, whole=last - first == len(groups)):
                return groups[first][0], groups[last - 1][1]
    if named and len(groups) > 5 and luhn(digits := re.sub(r"\D", "", run.group())) and len(digits) <= 19:
        return run.span()
    return None


def _is_card(digits: str, sizes: tuple[int, ...], before: str, *, named: bool, whole: bool) -> bool:
    usual = len(sizes) == 1 or sizes in _GROUPINGS
    if not (usual or (named and whole)) or len(set(digits)) == 1:
        return False
    known = any(prefix.match(digits) and len(digits) in lengths for prefix, lengths in _ISSUERS)
    if not luhn(digits):
        # Mistyped, or with one digit changed: the words before it still say that it is a card.
        announced = (named and len(sizes) > 2) or _CARD_CLOSE.search(before) is not None
        return known and usual and whole and len(digits) >= 13 and announced
    if named:
        return usual or whole
    if not (known and usual) or _OTHER_NUMBER.search(before):
        return False
    return len(sizes) > 1 or len(digits) in {15, 16} or (whole and len(digits) not in _AMBIGUOUS_LENGTHS)


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
