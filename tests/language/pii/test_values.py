"""Is a value told from the name, the type and the placeholder of one?"""

from __future__ import annotations

import pytest

from service.language.pii import values


@pytest.mark.parametrize(
    "value",
    [
        "",
        "None",
        "str",
        "${PW}",
        "{{ secret }}",
        "<your-key>",
        "$TOKEN",
        "%(password)s",
        "os.environ",
        "get_pw()",
        "x[0]",
        "self.password",
        "********",
        "xxxxxxxx",
        "....",
        "your_api_key_here",
        "YOUR-TOKEN",
        "/run/secrets/x",
        "aaaaaa",
        "https://example.org",
        "[REDACTED:EMAIL]",
        "settings.db.password",
    ],
)
def test_stands_for_something(value: str) -> None:
    assert values.stands_for_something(value)


@pytest.mark.parametrize("value", ["hunter2", "Frosch99!", "correct", "a1b2c3d4e5", "P@ss(word", "12345678"])
def test_is_a_value(value: str) -> None:
    assert not values.stands_for_something(value)


def test_quotes_make_code_a_value() -> None:
    assert values.stands_for_something("Summer(2024)")
    assert not values.stands_for_something("Summer(2024)", quoted=True)


@pytest.mark.parametrize(
    ("value", "mixed"),
    [
        ("hunter2", True),
        ("Frosch99!", True),
        ("P@ssword", True),
        ("sunshine", False),
        ("12345678", False),
        ("sha256", False),
        ("OAuth2", False),
        ("2024-05-12", False),
        ("user_name", False),
        ("a1", False),
    ],
)
def test_is_mixed(value: str, mixed: bool) -> None:
    assert values.is_mixed(value) is mixed


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("q7Zr2LmX9vKp4TnB8sWd", True),
        ("us-east-1", False),
        ("my-cluster-12", False),
        ("AuthTokenProviderFactory", False),
        ("qZrLmXvKpTnBsWdHcYjFgRt", True),
        ("2024-05-12T10:00", False),
        ("aaaaaaaaaaaaaaaaaaa1", False),
    ],
)
def test_is_token(value: str, token: bool) -> None:
    assert values.is_token(value, min_chars=8, min_bits=2.8) is token


def test_entropy_in_bits() -> None:
    assert values.entropy_bits("") == 0
    assert values.entropy_bits("aaaa") == 0
    assert values.entropy_bits("abcd") == pytest.approx(2)
