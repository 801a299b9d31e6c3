"""Telephone numbers.

There are three degrees of evidence. An international number, or the American 3-3-4, is recognised by its form. A
national number with its trunk zero counts when the numbering plan of some country agrees (phonenumbers knows them).
Everything shorter or plainer, down to six digits, needs a word before or after that says so: "call me at", "Fax:", "...
mobile".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import phonenumbers

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
    if speak_for(text, start, end):
        return True
    return not speak_against(text, start) and _has_dialling_form(text[start:end])


def _is_part_of_a_name(text: str, start: int) -> bool:
    """True after a hyphen or slash that ties the digits to letters or digits: PO-123456, posts/123456."""
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


# -- cues: words right before or right after digits that make them a telephone number, or something else ---------------

LOOK_BACK_CHARS = 60

_DEVICE = (
    r"(?:tele?(?:phone)?|phone|mobile|mob|cell(?:phone|ular)?|fax|whats[ ]?app|signal|imessage|landline|hotline"
    r"|helpline|toll[- ]free|pager|handy|telefon|mobil|t[e\u00e9]l[e\u00e9]fono?|t[e\u00e9]l(?:[e\u00e9]phone)?"
    r"|portable|celular|sms|ph|contact|emergency|switchboard|voicemail|call)"
)
_PLACE = r"(?:office|home|work|desk|business|direct|main|private|personal|day|evening)"
_WHOSE = r"(?:my|his|her|their|our|your|whose|new|old|other|contact|direct|different|following|this)"
_WHOM = (
    r"(?:[ ](?:me|us|him|her|them|you|back|someone|somebody|support|mum|mom|dad|home|now|anytime"
    r"|(?:mr|mrs|ms|dr)\.?[ ]\w+|(?-i:[A-Z][a-z]+))){0,3}"
)
_DIAL = r"(?:call|ring|dial|phone|text|message|whatsapp|sms|fax|buzz)"
_DIALLED = (
    r"(?:call(?:s|ed|ing)?|rang|ringing|dial(?:s|l?ed|l?ing)?|phon(?:ed|ing)|text(?:s|ed|ing)?|messag(?:es?|ed|ing)"
    r"|fax(?:ed)?|reach(?:ed|able|es)?|contact(?:ed|able)?|answer(?:s|ed|ing)?|available|sms)"
)
_BEFORE = re.compile(
    rf"""(?xi)(?:
      \b{_DEVICE}[ ]?(?:number|num|no|nr|\#|line|contact)?s?\b["'*_)\]]{{0,3}}
        (?:[ ]?(?:is|was|are|at|on|via|under|to|of|for[ ]\w+))?
    | \b{_PLACE}(?:[ ](?:number|no|line|phone|tel))?["'*_)]{{0,3}}[ ]?(?=[:=]|is\b)(?:is)?
    | \b{_WHOSE}[ ](?:new[ ]|old[ ]|other[ ]|current[ ]|direct[ ])?(?:number|digits)(?:[ ](?:is|was|at|on))?
    | \bregistered(?:[ ](?:number|phone|mobile|at|on|under|with))?
    | \b{_DIAL}{_WHOM}(?:[ ](?:at|on|under|via|to))?
    | \b{_DIALLED}{_WHOM}[ ](?:at|on|under|via|to|from|by)(?:[ ](?:the[ ])?(?:number|phone|mobile|cell))?
    )[\s:=.?#"'\u2019>(\[*_`-]{{0,6}}$"""
)
# Parts of the words above; without one of them the expensive pattern is not tried.
_STEMS = (
    "tel", "phon", "mob", "cel", "fax", "what", "sign", "imes", "line", "free", "page", "hand", "port", "sms", "ph",
    "cont", "emer", "board", "mail", "call", "offi", "home", "work", "desk", "busi", "dire", "main", "priv", "pers",
    "day", "even", "numb", "digi", "regi", "ring", "rang", "dial", "text", "mess", "buzz", "reac", "answ", "avai",
    "t\u00e9l",
)  # fmt: skip
_AFTER = re.compile(
    r"""(?xi)[ ]?[-,(\[/\u2013]?[ ]?
    (?:office|fax|mobile|cell|home|work|landline|desk|tel|phone|whatsapp|direct|main)
    (?=\W{0,2}(?:$|[\n,;.)\\|\]])|[ ](?:phone|number|line)\b)"""
)
_UNIT_AFTER = re.compile(
    r"(?i)\s?(?:ms|ns|us|s|sec\w*|minutes?|hours?|times|bytes?|[kmgt]i?b|rows?|users?|people|items?|requests?|calls?"
    r"|tokens?|records?|events?|lines?|dollars?|euros?|usd|eur|gbp|percent|points?|steps?|messages?|followers|views)\b"
)
_OTHER_NUMBER = re.compile(
    r"""(?xi)(?:\b(?:order|invoice|tracking|isbn(?:-1[03])?|issn|ticket|case|ref(?:erence)?|serial|account|acct|part|sku
      |model|version|build|bug|issue|pr|commit|pid|port|zip|postcode|vat|iban|card|policy|licen[cs]e|passport|flight
      |customer|member|employee|student|patient|booking|confirmation|tax|routing|claim|doi|rfc|iso|page|pp|lot|batch
      |id|uid|timestamp|epoch|hash|range|from|between)(?:[ ]?(?:id|no|nr|num|number|code))?(?:[ ](?:is|was))?|\#)
      [\s\#:.="'(-]{0,5}$"""
)


def speak_for(text: str, start: int, end: int) -> bool:
    """True if the words before `start` or after `end` say that the digits between them are a phone number."""
    if _UNIT_AFTER.match(text, end):
        return False
    before = text[max(0, start - LOOK_BACK_CHARS) : start]
    low = before.lower()
    if low.islower() and any(map(low.__contains__, _STEMS)) and _BEFORE.search(before):
        return True
    return _AFTER.match(text, end) is not None


def speak_against(text: str, start: int) -> bool:
    """True if the words before it name another kind of number."""
    return _OTHER_NUMBER.search(text[max(0, start - LOOK_BACK_CHARS) : start]) is not None
