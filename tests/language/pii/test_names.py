"""Which identifiers announce a secret?"""

from __future__ import annotations

import pytest

from service.language.pii import names
from service.language.pii.names import Strength


@pytest.mark.parametrize(
    ("key", "strength"),
    [
        ("password", Strength.PASSWORD),
        ("db_password", Strength.PASSWORD),
        ("ClearTextPassword", Strength.PASSWORD),
        ("PGPASSWORD", Strength.PASSWORD),
        ("api_key", Strength.KEY),
        ("apiKey", Strength.KEY),
        ("API-KEY", Strength.KEY),
        ("secret key", Strength.KEY),
        ("access_token", Strength.KEY),
        ("clientSecret", Strength.KEY),
        ("oktaKey", Strength.WEAK),
        ("key", Strength.WEAK),
        ("Authorization", Strength.WEAK),
        ("monkey", None),
        ("keyboard", None),
        ("tokenizer", None),
        ("AUTHOR", None),
        ("compass", None),
        ("bypass", None),
        ("primary_key", None),
        ("nextPageToken", None),
        ("max_tokens", None),
        ("password_policy", None),
        ("passwordLength", None),
        ("token_type", None),
        ("secretName", None),
        ("title", None),
    ],
)
def test_strength_of_a_name(key: str, strength: Strength | None) -> None:
    assert names.of_key(key) is strength


def test_lower_case_keeps_every_place() -> None:
    text = "\u0130stanbul PASSWORD"
    assert len(names.lowered(text)) == len(text)
