"""Redacts texts and JSON values before they are stored.

`find` locates secrets and personal numbers, `redact` replaces them by `[REDACTED:LABEL]` and is the only source of
CleanText. A text without findings is returned byte for byte. All of it is CPU work without I/O: about 0.2 ms for a
message, linear in the length, so texts beyond a few kilobytes belong in a thread.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from service.domain.errors import PiiRejected
from service.domain.text import CleanText, RedactionCount
from service.redaction.detection import (
    accounts,
    addresses,
    announcements,
    arguments,
    blocks,
    folding,
    logins,
    names,
    phones,
    scorer,
    secret_contexts,
    tokens,
)
from service.redaction.detection.findings import PASSWORD, Finding, blank, placeholder, replace, settle
from service.redaction.detection.value_shapes import stands_for_something

# Lower-case words contain no secret, and nearly all keys are such words.
_PLAIN_KEY = re.compile(r"[a-z_]{0,40}")

# A placeholder changes the words around it and may uncover a second finding; two rounds have always sufficed.
_MAX_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Redacted:
    """A clean text, and what was removed from it, with labels in alphabetical order."""

    text: CleanText
    redactions: tuple[RedactionCount, ...]


def find(text: str, labels: scorer.Labels | None = None) -> tuple[Finding, ...]:
    """Spans that must not be stored, ascending, without overlap; placeholders are never part of one. Look-alikes count
    as the characters they look like. `labels`: of the tokens that were judged before."""
    plain, places = folding.fold(text)
    secrets = (blocks, tokens, secret_contexts, arguments, logins, addresses)
    findings = [item for module in secrets for item in module.find(plain)]
    if any(map(str.isdigit, plain)):
        numbers = settle(plain, accounts.find(plain))
        findings += numbers
        findings += phones.find(blank(plain, numbers))
    known = settle(plain, findings)
    scored = scorer.find(blank(plain, known), {} if labels is None else labels)
    return folding.unfold(text, settle(plain, [*known, *scored]), places)


def redact(text: str) -> Redacted:
    """The text with placeholders. Raises PiiRejected when a secret is announced but cannot be bounded."""
    return _redact(text, bare=True)


def redact_json(value: object) -> tuple[object, tuple[RedactionCount, ...]]:
    """A copy of nested dicts and lists with every string and every key redacted; numbers under a harmless key stay.

    The key is context: a value under "password" is replaced as a whole. Raises PiiRejected like `redact`, except that a
    credential word by itself counts as a name ({"topic": "password"}). Keys that become equal are numbered, so that no
    value is lost.
    """
    counts: Counter[str] = Counter()
    return _walk(value, counts, ""), _count_by_label(counts)


def _redact(text: str, *, bare: bool, context: str = "") -> Redacted:
    counts: Counter[str] = Counter()
    text = _cut(text, context, counts)
    if announcements.is_unbounded(text, bare=bare):
        raise PiiRejected("The text announces a credential that cannot be cut out; send the text without it.")
    return Redacted(CleanText(text), _count_by_label(counts))


def _cut(text: str, context: str, counts: Counter[str]) -> str:
    """Cuts the secrets out of a text. `context` precedes it during the search and is never part of the result."""
    labels: scorer.Labels = {}
    for _ in range(_MAX_ROUNDS):
        findings = _after(len(context), find(context + text, labels))
        if not findings:
            break
        counts.update(item.label for item in findings)
        text = replace(text, findings, lambda item: placeholder(item.label))
    return text


def _after(offset: int, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings in a text that begins at `offset`, relative to it."""
    return tuple(
        Finding(max(0, item.start - offset), item.end - offset, item.label) for item in findings if item.end > offset
    )


def _count_by_label(counts: Counter[str]) -> tuple[RedactionCount, ...]:
    return tuple(RedactionCount(label, counts[label]) for label in sorted(counts))


def _walk(value: object, counts: Counter[str], key: str) -> object:
    if isinstance(value, dict):
        return _walk_object(value, counts)
    if isinstance(value, list | tuple):
        return [_walk(item, counts, key) for item in value]
    if isinstance(value, str):
        return _clean_string(value, counts, key)
    if isinstance(value, int) and not isinstance(value, bool):
        number = _redact(str(value), context=_context(key), bare=False)
        counts.update({item.label: item.count for item in number.redactions})
        return number.text if number.redactions else value
    return value


def _walk_object(value: Mapping[str, object], counts: Counter[str]) -> dict[str, object]:
    clean: dict[str, object] = {}
    used: Counter[str] = Counter()
    for name, item in value.items():
        key = redacted = name if _PLAIN_KEY.fullmatch(name) else _cut(name, "", counts)
        while key != name and (key in clean or key in value):  # keys that became equal are numbered
            used[redacted] += 1
            key = f"{redacted}_{used[redacted] + 1}"
        clean[key] = _walk(item, counts, name)
    return clean


def _clean_string(value: str, counts: Counter[str], key: str) -> str:
    if key and names.of_key(key) is names.Strength.PASSWORD and not stands_for_something(value, quoted=True):
        counts[PASSWORD] += 1
        return placeholder(PASSWORD)
    clean = _redact(value, context=_context(key), bare=False)
    counts.update({item.label: item.count for item in clean.redactions})
    return clean.text


def _context(key: str) -> str:
    """`homePhone` and `card_number` as words before a colon, the way a text would announce the value."""
    words = re.sub(r"[_\-.]+|(?<=[a-z])(?=[A-Z])", " ", key[-64:]).strip()
    return f"{words.upper() if len(words) <= 3 else words}: " if words else ""


# Lower-case words and UUIDs cannot contain a key, and are nearly all names.
_PLAIN = re.compile(r"[a-z_ ]{1,40}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def holds_secret(name: str) -> bool:
    """Whether a name or an id holds a vendor's key, an announced password, a card's number, a private key or an address
    with a password. Such a name is refused: it cannot be redacted without becoming another one. Other personal data do
    not count, since users are often named by their mail address, nor do names that only look generated."""
    if _PLAIN.fullmatch(name):
        return False
    try:
        return _check_name(name)
    except _SecretFoundError:
        return True


class _SecretFoundError(Exception):
    """Keeps the name out of the cache."""


@lru_cache(maxsize=4_096)
def _check_name(name: str) -> bool:
    plain, _ = folding.fold(name)
    found = any(True for find in (blocks.find, tokens.find_telling, accounts.find_cards) for _ in find(plain))
    if found or any(each.label == PASSWORD for each in secret_contexts.find(plain)):
        raise _SecretFoundError
    return False
