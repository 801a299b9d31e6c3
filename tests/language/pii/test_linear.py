"""Does the time grow with the length, whatever is written? A quadratic pattern would take minutes here."""

from __future__ import annotations

import time

import pytest

from service.language import pii

SIZE_CHARS = 24_000
# Quadratic behaviour shows as a factor of 16 between the sizes; linear is 4. Generous, for machines are shared.
MOST_GROWTH = 10

UNITS = [
    "a", "1", "1 ", "1-", "1.", "a:", "@", "a@", "a.b@", "sk-", "key=", "password=", "password is ", "password:\n",
    'password="', "-----BEGIN PRIVATE KEY-----\n", "http://a:", "a://b:c", "curl -u ", "eyJ", "t1.", "(1", "QUJDREVG",
    "a_", "a-b-", "GB29 ", "123-45-", " ", "\n", "call me at 1234567 ", "1.1.1.", "a::", ":a1:", "x as my ",
    "PIN for a ",
    "credentials: a1!b2c3 ",
    "4111 1111 ", "1234 ****", "  a: QUJDREVG\n", "acme_live_", "[REDACTED:EMAIL]", "a (at) b.",
    "PuTTY-User-Key-File-2:", "3.14159 ", "1234567 ext ", "\u5bc6\u7801", "kind: Secret\n", "token abc1 ", "'", "{{",
]  # fmt: skip


def _cpu_s(text: str) -> float:
    began_s = time.thread_time()
    pii.find(text)
    return time.thread_time() - began_s


@pytest.mark.parametrize("unit", UNITS)
def test_time_is_linear(unit: str) -> None:
    text = unit * (SIZE_CHARS // len(unit))
    short_s = _cpu_s(text[: SIZE_CHARS // 4])
    assert _cpu_s(text) < max(short_s, 0.05) * MOST_GROWTH
