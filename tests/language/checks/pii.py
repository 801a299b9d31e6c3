"""Checks of tests/corpora/pii: what is redacted, refused, and left untouched."""

from __future__ import annotations

import time

import pytest

from service.domain.errors import PiiRejected
from service.domain.text import RedactionCount
from service.redaction import detection
from service.redaction.detection import names, value_shapes

LINEAR_CHARS = 24_000
MOST_GROWTH = 10
"""Quadratic time shows as a factor of 16 between the sizes; linear is 4. Generous, for machines are shared."""


def check_untouched(text: str) -> None:
    redacted = detection.redact(text)
    assert (redacted.text, redacted.redactions) == (text, ())


def check_placed(text: str, secrets: list[str]) -> None:
    """Secrets known by the place they stand in."""
    clean = detection.redact(text).text
    assert [secret for secret in secrets if secret in clean] == []


def check_mentioned(text: str) -> None:
    """A secret is spoken of, none is given."""
    assert detection.redact(text).text == text


def check_rejected(text: str) -> None:
    """A secret is announced and not found: nothing may be stored."""
    with pytest.raises(PiiRejected) as caught:
        detection.redact(text)
    assert caught.value.code == "pii_rejected"
    assert text.strip() not in caught.value.detail


def check_json_keys(value: dict[str, object], label: str) -> None:
    """The key says what the value is."""
    clean, redactions = detection.redact_json(value)
    assert redactions == (RedactionCount(label, 1),)
    assert f"[REDACTED:{label}]" in str(clean)


def check_json_harmless(value: object) -> None:
    assert detection.redact_json(value) == (value, ())


def check_key_strength(key: str, strength: str | None) -> None:
    found = names.of_key(key)
    assert (found and found.name) == strength


def check_placeholders(value: str) -> None:
    assert value_shapes.stands_for_something(value)


def check_values(value: str) -> None:
    assert not value_shapes.stands_for_something(value)


def check_mixed(value: str, *, mixed: bool) -> None:
    assert value_shapes.is_mixed(value) is mixed


def check_tokens(value: str, *, token: bool) -> None:
    assert value_shapes.is_token(value, min_chars=8, min_bits=2.8) is token


def check_linear(unit: str) -> None:
    """The time grows with the length, whatever is written: a quadratic pattern would take minutes."""
    text = unit * (LINEAR_CHARS // len(unit))
    quarter_s = _cpu_s(text[: LINEAR_CHARS // 4])
    assert _cpu_s(text) < max(quarter_s, 0.05) * MOST_GROWTH


def _cpu_s(text: str) -> float:
    """The better of two measurements, since other processes share the machine's caches."""
    times_s = []
    for _ in range(2):
        began_s = time.thread_time()
        detection.find(text)
        times_s.append(time.thread_time() - began_s)
    return min(times_s)
