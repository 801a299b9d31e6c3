"""Recognises keys by their own shape, in any context.

`vendor_keys.py` has the shapes. A candidate must also look random: `ghp_xxxxxxxx` in a manual is not a secret.

All patterns run over long unbroken runs only, which ordinary prose hardly has. Quantifiers are possessive or bounded,
so that no text can make them slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from service.redaction.detection.findings import API_KEY, Finding
from service.redaction.detection.value_shapes import entropy_bits
from service.redaction.detection.vendor_keys import COMMON_PREFIXES, PREFIXED, SHAPES, UNMISTAKABLE

# A run of token characters; anything shorter cannot be one of the above.
_RUN = re.compile(r"""[^\s"'`<>(){}\[\],;|\\]{16,}+""")


def _any_of(prefixed: Iterable[tuple[str, str, int]]) -> re.Pattern[str]:
    forms = [*SHAPES, *(f"(?:{prefix}){chars}{{{least},}}+" for prefix, chars, least in prefixed)]
    return re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z0-9_~.%])(?:" + "|".join(forms) + ")", re.ASCII)


_TELLING = _any_of(PREFIXED)
_TOKEN = _any_of([*PREFIXED, *COMMON_PREFIXES])
_GLUED = re.compile("|".join(UNMISTAKABLE), re.ASCII)
# Azure shared access: the parameter before it says what it is, and the run it ends may be long.
_SIGNATURE = re.compile(r"[?&]sig=([\w%+/=-]{30,}+)", re.ASCII)
# test_returns_201_when_nothing_changed: four words and more are a name, not a key.
_SPOKEN = re.compile(
    r"(?:(?:[a-z]+\d{0,2}|[A-Z]+\d{0,2}|[A-Z][a-z]+|\d{1,4}[a-z]{0,2})[_.-]){3,}(?:[a-z]+|[A-Z]+|[A-Z][a-z]+|\d{1,4}[a-z]{0,2})$"
)
_AWS_ID = re.compile(r"A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])[A-Z0-9]{16}")
_AWS_SECRET = re.compile(r"(?<![\w/+=])[A-Za-z0-9/+]{40}(?![\w/+=])")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*")
_BASE64_OF_ADDRESSES = re.compile(r"[\w+/-]*", re.ASCII)
_AWS_REACH_CHARS = 300  # the distance of a secret from its access key id in a credentials file or a table

# Below this a body is a mask or a filler. Real tokens of 20 characters have 3.5 to 4.3 bits.
_MIN_BITS = 2.6


def find(text: str) -> Iterator[Finding]:
    """Keys that vendors have made recognisable, AWS secrets near their key id, and signatures of addresses."""
    for found in _find_shaped(text, _TOKEN):
        yield found
        yield from _aws_secrets(text, found)
    if "sig=" in text:
        for match in _SIGNATURE.finditer(text):
            yield Finding(match.start(1), match.end(1), API_KEY)


def find_telling(name: str) -> Iterator[Finding]:
    """Finds only keys with a unique prefix or shape."""
    yield from _find_shaped(name, _TELLING)


def _find_shaped(text: str, pattern: re.Pattern[str]) -> Iterator[Finding]:
    for run in _RUN.finditer(text):
        for shape in (pattern, _GLUED):
            for match in shape.finditer(text, run.start(), run.end()):
                if _is_disordered(match.group()) and not _is_within_base64(text, match.start()):
                    yield Finding(match.start(), match.end(), API_KEY)


def _is_within_base64(text: str, start: int) -> bool:
    """Whether a match continues Base64: in a long image every short prefix occurs by chance."""
    before = text[max(0, start - 40) : start]
    if len(before) < 40 or not (before[-1] in "+/" or before[-1].isalnum()):
        return False
    alphabet = _BASE64_OF_ADDRESSES if before[-1].isalnum() else _BASE64
    return alphabet.fullmatch(before) is not None and _is_mixed(before)


def _is_mixed(text: str) -> bool:
    return all(sum(map(kind, text)) >= 3 for kind in (str.isupper, str.islower, str.isdigit))


def _is_disordered(token: str) -> bool:
    if _AWS_ID.fullmatch(token):  # base 32: one in thirty has no digit
        return entropy_bits(token[4:]) >= _MIN_BITS
    body = token[4:400]
    varied = any(map(str.isdigit, body)) or (any(map(str.isupper, body)) and any(map(str.islower, body)))
    return varied and entropy_bits(body) >= _MIN_BITS and not _SPOKEN.match(token[:400])


def _aws_secrets(text: str, found: Finding) -> Iterator[Finding]:
    if not _AWS_ID.fullmatch(text, found.start, found.end):
        return
    for match in _AWS_SECRET.finditer(text, found.end, min(len(text), found.end + _AWS_REACH_CHARS)):
        body = match.group()
        if any(map(str.isdigit, body)) and any(map(str.isupper, body)) and any(map(str.islower, body)):
            yield Finding(match.start(), match.end(), API_KEY)
