"""Payment card numbers, masked ones and check codes (CVV) among them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.redaction.detection.findings import CREDIT_CARD, Finding

_LOOK_BACK_CHARS = 48
CARD_DIGITS = 12, 19
"""The least and the most digits of a card number (ISO/IEC 7812)."""

SIX_DIGITS = re.compile(r"\d(?:\D{0,4}\d){5}")
"""Six digits close together: every card and account number has them, and hardly any sentence."""

# Twelve digits and more, single blanks, hyphens or dots between; an expiry date or a check number may follow.
_CARD_RUN = re.compile(r"(?<![\w.+#])(?<!\d[-/])\d(?:[ .-]?\d){11,39}+(?!\w)")
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


def find(text: str) -> Iterator[Finding]:
    """Card numbers by issuer and Luhn check digit, or by the words before them; masked numbers; check codes."""
    yield from _parts_of_cards(text)
    if SIX_DIGITS.search(text):
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
    if len(set(digits)) == 1:
        return False
    usual = len(sizes) == 1 or sizes in _GROUPINGS
    known = any(prefix.match(digits) and len(digits) in lengths for prefix, lengths in _ISSUERS)
    if not luhn(digits):
        # Mistyped, or with one digit changed: the words before it still say that it is a card.
        said = (named and len(sizes) > 2) or _CARD_CLOSE.search(before) is not None
        return known and usual and whole and len(digits) >= 13 and said
    if named:
        return usual or whole
    if not (known and usual) or _OTHER_NUMBER.search(before):
        return False
    return len(sizes) > 1 or len(digits) in {15, 16} or (whole and len(digits) not in _AMBIGUOUS_LENGTHS)
