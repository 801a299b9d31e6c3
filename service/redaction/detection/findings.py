"""A finding, and how overlapping findings are merged.

Detectors are independent, so a piece of text is often found twice: the e-mail inside a connection string, the digits of
a card read as a phone number. Overlapping findings become one span with the most informative label. An existing
placeholder is never part of a finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

EMAIL = "EMAIL"
PHONE = "PHONE"
SSN = "SSN"
CREDIT_CARD = "CREDIT_CARD"
API_KEY = "API_KEY"
IBAN = "IBAN"
IP = "IP"
PASSWORD = "PASSWORD"  # noqa: S105 - the name of a label
PRIVATE_KEY = "PRIVATE_KEY"
CONNECTION_STRING = "CONNECTION_STRING"

# The label of an overlap is the first of these that occurs in it. A secret outranks personal data inside it.
_RANK = {
    label: rank
    for rank, label in enumerate(
        (PRIVATE_KEY, CONNECTION_STRING, API_KEY, PASSWORD, IBAN, CREDIT_CARD, SSN, EMAIL, IP, PHONE)
    )
}

PLACEHOLDER = re.compile(r"\[REDACTED:[A-Z_]{2,32}\]")


@dataclass(frozen=True, slots=True)
class Finding:
    """A half-open character span that must not be stored, and what it is."""

    start: int
    end: int
    label: str


def placeholder(label: str) -> str:
    """The replacement of a finding."""
    return f"[REDACTED:{label}]"


def blank(text: str, findings: Iterable[Finding]) -> str:
    """The text with zero bytes for the findings, at its old length: a phone number may be adjacent to a card number."""
    return replace(text, findings, lambda finding: "\0" * (finding.end - finding.start))


def replace(text: str, findings: Iterable[Finding], by: Callable[[Finding], str]) -> str:
    """The text with something else in the place of each finding."""
    pieces, position = [], 0
    for finding in findings:
        pieces += [text[position : finding.start], by(finding)]
        position = finding.end
    return "".join([*pieces, text[position:]])


def settle(text: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The spans in ascending order and without overlap, placeholders cut out."""
    merged: list[Finding] = []
    for finding in sorted(findings, key=lambda item: (item.start, -item.end)):
        if merged and finding.start < merged[-1].end:
            merged[-1] = _unite(merged[-1], finding)
        else:
            merged.append(finding)
    if "[REDACTED:" not in text:
        return tuple(merged)
    placeholders = [match.span() for match in PLACEHOLDER.finditer(text)]
    return tuple(_cut_placeholders(text, merged, placeholders))


def _unite(left: Finding, right: Finding) -> Finding:
    label = min(left.label, right.label, key=lambda name: _RANK[name])
    return Finding(left.start, max(left.end, right.end), label)


def _cut_placeholders(text: str, findings: list[Finding], placeholders: list[tuple[int, int]]) -> Iterator[Finding]:
    """The parts of findings outside the placeholders that hold a letter or digit; both lists ascend."""
    first = 0
    for finding in findings:
        while first < len(placeholders) and placeholders[first][1] <= finding.start:
            first += 1
        start = finding.start
        for low, high in placeholders[first:]:
            if low >= finding.end:
                break
            if _says_something(text, start, low):
                yield Finding(start, low, finding.label)
            start = max(start, high)
        if _says_something(text, start, finding.end):
            yield Finding(start, finding.end, finding.label)


def _says_something(text: str, start: int, end: int) -> bool:
    return any(char.isalnum() for char in text[start:end])
