from __future__ import annotations

from typing import Any

import pytest

from service.providers.choose import embedder_dimension, embedder_model, open_embedder
from service.providers.presets import PRESETS, Tuning, choose_embedder, choose_llm, prefixes, tuning
from service.settings import Settings

KEYS = {"openai": "sk-o", "anthropic": "sk-a", "google": "g"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, None),
        ({"openai": ""}, None),
        (KEYS, "openai:gpt-4o-mini"),
        ({"google": "g", "anthropic": "a"}, "anthropic:claude-3-5-haiku-latest"),
        ({"google": "g"}, "google:gemini-flash-lite-latest"),
        ({"azure_openai": "z"}, None),
    ],
)
def test_a_key_switches_the_llm_on(keys: dict[str, str], expected: str | None) -> None:
    endpoint = choose_llm(keys=keys)
    assert (endpoint.id if endpoint else None) == expected


def test_the_named_provider_wins() -> None:
    endpoint = choose_llm(provider=" Anthropic ", keys=KEYS)
    assert endpoint is not None
    assert (endpoint.id, endpoint.api_key) == ("anthropic:claude-3-5-haiku-latest", "sk-a")


@pytest.mark.parametrize("provider", ["none", "off", "rules"])
def test_the_llm_can_be_kept_off(provider: str) -> None:
    assert choose_llm(provider=provider, keys=KEYS) is None


def test_an_url_without_a_provider() -> None:
    url = "http://127.0.0.1:9/v1/"
    ours = choose_llm(base_url=url, model="m", keys={"anthropic": "sk-a"})
    assert ours is not None
    assert (ours.id, ours.base_url, ours.api_key) == ("custom:m", "http://127.0.0.1:9/v1", None)
    proxied = choose_llm(base_url=url, keys=KEYS)
    assert proxied is not None
    assert (proxied.id, proxied.api_key) == ("openai:gpt-4o-mini", "sk-o")


def test_a_key_without_a_provider_is_openais() -> None:
    endpoint = choose_llm(api_key="sk-x", model="gpt-4.1-nano", models={"extract": "gpt-4o", "decide": ""})
    assert endpoint is not None
    assert (endpoint.id, endpoint.api_key) == ("openai:gpt-4.1-nano", "sk-x")
    assert dict(endpoint.models) == {"extract": "gpt-4o"}
    assert "sk-x" not in repr(endpoint)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"provider": "openai"}, "OPENAI_API_KEY"),
        ({"provider": "azure_openai", "api_key": "k"}, "base URL"),
        ({"provider": "vllm"}, "needs a model"),
        ({"provider": "custom", "model": "m"}, "base URL"),
        ({"base_url": "http://127.0.0.1:9/v1"}, "needs a model"),
        ({"provider": "watson"}, "unknown provider 'watson'"),
    ],
)
def test_what_is_missing_is_named(given: dict[str, Any], missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        choose_llm(**given)


def test_a_key_never_changes_the_embedder() -> None:
    assert choose_embedder(keys=KEYS) is None
    assert choose_embedder(provider="local", keys=KEYS) is None
    endpoint = choose_embedder(provider="openai", keys=KEYS)
    assert endpoint is not None
    assert endpoint.id == "openai:text-embedding-3-small"


def test_anthropic_has_no_embeddings() -> None:
    with pytest.raises(ValueError, match="needs a model"):
        choose_embedder(provider="anthropic", keys=KEYS)


def test_the_table() -> None:
    assert set(PRESETS) == {
        "openai", "azure_openai", "anthropic", "google", "ollama", "huggingface", "vllm", "custom",
    }  # fmt: skip
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert preset.base_url is None or not preset.base_url.endswith("/")
        assert not preset.model_in_path or "api-version" in preset.query


def test_tuning_per_task() -> None:
    assert tuning("classify") == Tuning(temperature=0.3, max_tokens=50)
    assert tuning("extract") == Tuning(temperature=0.0, max_tokens=2_000)


@pytest.mark.parametrize(
    ("model", "query"),
    [
        ("text-embedding-3-small", ""),
        ("nomic-embed-text", "search_query: "),
        ("nomic-embed-text:v1.5", "search_query: "),
        ("intfloat/multilingual-e5-small", "query: "),
        ("Snowflake/Snowflake-Arctic-Embed-M", "Represent this sentence for searching relevant passages: "),
    ],
)
def test_prefixes(model: str, query: str) -> None:
    assert prefixes(model).query == query


def test_migrations_name_the_embedder_without_its_key() -> None:
    settings = Settings.model_validate({"embedder_provider": "openai", "embedding_dim": 768})
    assert (embedder_model(settings), embedder_dimension(settings)) == ("openai:text-embedding-3-small", 768)
    with pytest.raises(ValueError, match="needs an API key"):
        open_embedder(settings)
