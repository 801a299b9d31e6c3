"""The printed commands survive a shell, and the banner names what matters."""

from __future__ import annotations

import json
import shlex

import pytest

from service.launch.listener import reachable_url
from service.launch.run import banner, curl


def test_the_lines_survive_a_shell() -> None:
    line = curl("http://127.0.0.1:8080/v1/memories", "a'b \"c$d", {"content": "it's $HOME", "user_id": "x"})
    words = shlex.split(line)
    assert "\n" not in line
    assert "Authorization: Bearer a'b \"c$d" in words
    assert json.loads(words[-1]) == {"content": "it's $HOME", "user_id": "x"}


def test_the_banner_names_url_key_and_place() -> None:
    text = banner("http://127.0.0.1:8080", "lox_key", "/some where")
    assert "http://127.0.0.1:8080/docs" in text
    assert "lox_key" in text
    assert "/some where" in text
    assert "http://127.0.0.1:8080/console#key=lox_key" in text
    assert "http://x/#lox_key" in banner("http://x", "lox_key", "/there", has_console=False)
    assert "\nexport LOXODON_URL=http://127.0.0.1:8080 LOXODON_API_KEY=lox_key\n" in text
    assert sum(line.startswith("curl ") for line in text.splitlines()) == 2


def test_the_banner_says_which_model_reads() -> None:
    assert "Language model: none: rules" in banner("http://x", "lox_key", "/there")
    text = banner("http://x", "lox_key", "/there", model="openai:gpt-6-luna (answers)")
    assert "  Language model: openai:gpt-6-luna (answers)" in text.splitlines()


def test_a_revoked_key_is_not_shown_but_how_to_make_another() -> None:
    text = banner("http://x", "lox_key", "/there", is_accepted=False)
    assert "revoked" in text
    assert "lox_key" not in text
    assert "curl" not in text
    assert "POST /v1/api-keys" in text
    assert "LOXODON_BOOTSTRAP_API_KEY" in text
    assert "revoked" not in banner("http://x", "lox_key", "/there")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("::1", "http://[::1]:80"),
        ("localhost", "http://localhost:80"),
    ],
)
def test_reachable_url(host: str, url: str) -> None:
    assert reachable_url(host, 80) == url
