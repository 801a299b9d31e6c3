"""Secrets that a form of their own gives away: private keys, addresses with credentials, secret manifests, PINs and
other short codes, and seed phrases of wallets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.redaction.detection.findings import API_KEY, CONNECTION_STRING, PASSWORD, PRIVATE_KEY, Finding
from service.redaction.detection.value_shapes import stands_for_something

_PEM_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
# What follows the header of a real key, in a file, in JSON with \n escapes or quoted in a mail.
_PEM_BODY = re.compile(
    r"(?:\\[nr]|[\s>\"'+]){0,12}(?:[A-Za-z0-9+/=]{16}|[A-Za-z0-9+/=]{1,15}$|Proc-Type:|Version:|Comment:)"
)
_PUTTY = re.compile(r"PuTTY-User-Key-File-[23]:")
_PUTTY_END = re.compile(r"Private-MAC: ?[0-9a-fA-F]{16,}")

# Scheme, user (may be empty), password, host. A password may hold a slash, an '@' ends it.
_URL = re.compile(
    r"""(?x)
    (?<![A-Za-z0-9+.\-]) (?P<scheme>[A-Za-z][A-Za-z0-9+.\-]{1,30}) ://
    (?P<user>[^\s/:@"'<>`]{0,120}) : (?P<password>[^\s@"'<>`]{1,200}) @ [^\s"'<>`)\]},;]++
    """
)
_PORT = re.compile(r"\d{1,5}(?:[/?#]|$)")

_MANIFEST = re.compile(r"(?m)^[ \t]*[\"']?kind[\"']?:[ \t]*[\"']?Secret\b")
_MANIFEST_LINE = re.compile(
    r"(?m)^[ \t]{1,20}[\"']?[\w.\-]{1,80}[\"']?:[ \t]{0,4}[\"']?([A-Za-z0-9+/]{8,}+={0,3})[\"']?,?[ \t]*$"
)

_MANIFEST_PLAIN = re.compile(
    r"(?m)^[ \t]{1,20}[\"']?[\w.\-]{1,80}[\"']?:[ \t]{1,4}[\"']?([^\s\"'][^\n\"']{2,200})[\"']?[ \t]*$"
)

_PIN = re.compile(
    r"(?:\b(?:PIN|Pin|PUK|puk)(?:[ -]?(?:code|number|Code)|/\w{2,12})?|\bpin[ -]?(?:code|number)"
    r"|\b(?:my|his|her|our|the|card|sim|phone|voicemail|bank|tablet) pin|\bpin(?='s | - |[\"']?\s?[:=]| is\b"
    r"| ?:|(?: [\w'-]{1,20}){2,6} is\b)"
    r"|(?i:\b(?:otp|one[- ]time (?:code|password|passcode)|code pin|t\u00fcrcode|(?:safe|lock\w*|the|my"
    r"|bike) comb(?:o|ination)"
    r"|(?:verification|security|2fa|mfa|access|door|gate|alarm|entry|unlock|safe|garage) code"
    r"|(?:code|codice|c\u00f3digo) (?:d['\u2019e]|del(?:la)?)(?: la)? ?(?:port|puert|entr|acc|alarm|immeuble)\w*)))"
    r"(?: (?:for|to|of|on|von|vom|f\u00fcr|de[rl]?|du|del?la) (?:[\w'-]{1,20} ){0,5}?[^\W\d][\w'-]{1,20})??"
    r"(?:[\"']?\s?[:=#]| -|'s| is| was| are| ist| est| es| \u00e8|)(?: now| just)?"
    r"\s{0,2}[\"'(*]{0,2}(?<!\d)(\d(?:[ -]?\d){3,7})(?![\w-]|\.\d)"
)
# Seed phrases: twelve to twenty-four words of a fixed list of short ones (BIP 39).
_SEED = re.compile(
    r"(?i)\b(?:seed|recovery|mnemonic|backup|wallet)[ -](?:phrase|words|seed)\b(?: is| are|)\W{1,4}"
    r"((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b"
)


def find(text: str) -> Iterator[Finding]:
    """Private keys, URLs with a password, the data of Kubernetes secrets, digits after "PIN", "door code" and the like,
    seed phrases."""
    if "-----BEGIN" in text:
        yield from _private_keys(text)
    if "PuTTY" in text:
        yield from _between(text, _PUTTY, _PUTTY_END)
    if "://" in text:
        yield from _urls(text)
    if _MANIFEST.search(text):
        plain = text.find("stringData:")
        for match in _MANIFEST_LINE.finditer(text):
            yield Finding(match.start(1), match.end(1), API_KEY)
        for match in _MANIFEST_PLAIN.finditer(text, plain) if plain >= 0 else ():
            yield Finding(match.start(1), match.end(1), PASSWORD)
    yield from _codes(text)


def _private_keys(text: str) -> Iterator[Finding]:
    """Whole PEM blocks; one without an end extends to the end of the text. A mere mention of the header stays."""
    begin, ends = _PEM_BEGIN.search(text), True
    while begin:
        end = _PEM_END.search(text, begin.end()) if ends else None
        ends = end is not None  # none after this one means none after the next
        if end is None and not _PEM_BODY.match(text, begin.end()):
            begin = _PEM_BEGIN.search(text, begin.end())
            continue
        stop = end.end() if end else len(text)
        yield Finding(begin.start(), stop, PRIVATE_KEY)
        begin = _PEM_BEGIN.search(text, stop)


def _between(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[Finding]:
    begin = opening.search(text)
    while begin:
        end = closing.search(text, begin.end())
        stop = end.end() if end else len(text)
        yield Finding(begin.start(), stop, PRIVATE_KEY)
        begin = opening.search(text, stop)


def _urls(text: str) -> Iterator[Finding]:
    for match in _URL.finditer(text):
        password = match["password"]
        if _PORT.match(password) or stands_for_something(password, quoted=True):
            continue
        yield Finding(match.start(), match.start() + len(match.group().rstrip(".!?:")), CONNECTION_STRING)


def _codes(text: str) -> Iterator[Finding]:
    low = text.lower()
    if "phrase" in low or "words" in low or "mnemonic" in low:
        for match in _SEED.finditer(text):
            yield Finding(match.start(1), match.end(1), PASSWORD)
    if any(
        word in low for word in ("pin", "puk", "code", "codice", "c\u00f3digo", "otp", "one-time", "one time", "comb")
    ):
        for match in _PIN.finditer(text):
            yield Finding(match.start(1), match.end(1), PASSWORD)
