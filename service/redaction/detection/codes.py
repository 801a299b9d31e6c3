"""PINs and other short codes, and seed phrases of wallets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.redaction.detection.findings import PASSWORD, Finding

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
    """Digits after "PIN", "door code" and the like; recovery codes; seed phrases."""
    low = text.lower()
    if "phrase" in low or "words" in low or "mnemonic" in low:
        for match in _SEED.finditer(text):
            yield Finding(match.start(1), match.end(1), PASSWORD)
    if any(
        word in low for word in ("pin", "puk", "code", "codice", "c\u00f3digo", "otp", "one-time", "one time", "comb")
    ):
        for match in _PIN.finditer(text):
            yield Finding(match.start(1), match.end(1), PASSWORD)
