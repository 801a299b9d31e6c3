"""Does the border hold: bytes kept, secrets announced but absent refused, nested values reached?"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.text import Redaction
from service.errors import PiiRejected
from service.language import pii

REJECTED = [
    "my password",
    "My password.",
    "password",
    "Password:",
    "password =",
    "api_key=",
    '"api_key": "',
    "DB_PASSWORD=",
    "my password is",
    "my password is:\n",
    "The API key is ",
    "the access token is:",
    "secret:",
    "token=",
    "My PIN is",
    "my password for the router is",
    "Here is my password",
    "remember my password",
    "I live in Rome. My password",
    "Bob's password",
    "the database password",
    "admin password",
    "my api key",
]

PASSING = [
    "I reset my password yesterday",
    "reset my password",
    "password manager",
    "Forgot password",
    "She asked for my password",
    "The user lost her password.",
    "He uses the same password",
    "The team rotates the access token",
    "I do not know what the password is",
    "Invalid token",
    "if not token:",
    "def get_token():",
    'password = ""',
    "The key",
    "a secret",
    "Set a strong password.",
    "What is the password?",
]

WHITESPACE = [
    "  two blanks before and after  ",
    "\ttab\r\nline\r\n",
    "\u00a0hard blank\u200b",
    "e\u0301 is not \u00e9",
    "",
    " ",
]


@pytest.mark.parametrize("text", REJECTED)
def test_announced_without_value_is_rejected(text: str) -> None:
    with pytest.raises(PiiRejected) as caught:
        pii.redact(text)
    assert caught.value.code == "pii_rejected"
    assert text.strip() not in caught.value.detail


@pytest.mark.parametrize("text", PASSING)
def test_mention_passes(text: str) -> None:
    assert pii.redact(text).text == text


@pytest.mark.parametrize("text", WHITESPACE)
def test_text_without_findings_keeps_every_byte(text: str) -> None:
    assert pii.redact(text) == pii.Redacted(pii.redact(text).text, ())
    assert pii.redact(text).text == text


def test_only_the_span_is_replaced_and_counted() -> None:
    result = pii.redact("  mail a@b.org or c@d.org,\ncall +49 30 901820 ")
    assert result.text == "  mail [REDACTED:EMAIL] or [REDACTED:EMAIL],\ncall [REDACTED:PHONE] "
    assert result.redactions == (Redaction("EMAIL", 2), Redaction("PHONE", 1))


def test_overlap_becomes_one_span_under_the_stronger_label() -> None:
    text = "x postgresql://bob@example.org:s3cret!@10.0.0.1/db y"
    (found,) = pii.find("x postgresql://bob:s3cret!@10.0.0.1/db y")
    assert found == pii.Finding(2, 38, "CONNECTION_STRING")
    assert "s3cret" not in pii.redact(text).text


def test_findings_ascend_without_overlap() -> None:
    text = "a@b.org 10.0.0.1 my password is Frosch99! +49 30 901820 4111 1111 1111 1111 a@b.org"
    found = pii.find(text)
    assert len(found) == 6
    assert all(left.end <= right.start for left, right in pairwise(found))


PIECES = st.sampled_from(
    [
        "my password is ",
        "hunter2 ",
        "a@b.org",
        "4111 1111 1111 1111",
        "call me at ",
        "555-0134",
        " 12 ",
        "api key: ",
        "x9K2mQ7pLw4Zr8Tn",
        "[REDACTED:EMAIL]",
        "\n",
        ": ",
        "=",
        "10.0.0.1",
        "token ",
        '"',
        "DE89370400440532013000",
        "-",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    try:
        once = pii.redact(text)
    except PiiRejected:
        return
    assert pii.redact(once.text) == pii.Redacted(once.text, ())


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    found = pii.find(text)
    assert all(0 <= item.start < item.end <= len(text) for item in found)


def test_json_values_are_redacted_and_keys_are_not() -> None:
    value = {"a@b.org": ["c@d.org", {"note": "call +49 30 901820", "n": 7, "ok": True, "none": None}]}
    clean, redactions = pii.redact_json(value)
    assert clean == {
        "a@b.org": ["[REDACTED:EMAIL]", {"note": "call [REDACTED:PHONE]", "n": 7, "ok": True, "none": None}]
    }
    assert redactions == (Redaction("EMAIL", 1), Redaction("PHONE", 1))
    assert value["a@b.org"][0] == "c@d.org"


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ({"password": "sunshine"}, "PASSWORD"),
        ({"db_password": "correct horse"}, "PASSWORD"),
        ({"apiKey": "x9K2mQ7pLw4Zr8Tn"}, "API_KEY"),
        ({"headers": {"Authorization": "Bearer x9K2mQ7pLw4Zr8Tn"}}, "API_KEY"),
        ({"homePhone": "5550134"}, "PHONE"),
        ({"ssn": 536228134}, "SSN"),
        ({"card_number": 4111111111111111}, "CREDIT_CARD"),
        ({"pin": "4821"}, "PASSWORD"),
    ],
)
def test_the_key_is_context_for_the_value(value: dict[str, object], label: str) -> None:
    clean, redactions = pii.redact_json(value)
    assert redactions == (Redaction(label, 1),)
    assert f"[REDACTED:{label}]" in str(clean)


@pytest.mark.parametrize(
    "value",
    [
        {"topic": "password", "tags": ["api key", "my password"]},
        {"password": "", "token": None, "secret": "${SECRET}"},
        {"password": "[REDACTED:PASSWORD]"},
        {"tokens": 1715520600, "max_tokens": "4096", "total": 1715520600123},
        {"key": "value", "password_policy": "twelve characters", "sort_key": "created_at"},
        "plain",
        7,
        None,
        [],
    ],
)
def test_harmless_json_is_equal(value: object) -> None:
    assert pii.redact_json(value) == (value, ())


def test_json_announcement_without_value_is_rejected() -> None:
    with pytest.raises(PiiRejected):
        pii.redact_json({"note": "my password is"})
