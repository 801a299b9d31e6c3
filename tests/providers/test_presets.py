from __future__ import annotations

from pathlib import Path

import pytest

from service.kit.settings import Settings
from service.providers import choose
from service.providers.choose import embedder_dimension, embedder_model, open_embedder_of
from service.providers.presets import PRESETS, Endpoint, choose_embedder, choose_llm, llm_endpoint, prefixes

KEYS = {"openai": "sk-o", "anthropic": "sk-a", "google": "g"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, None),
        ({"openai": ""}, None),
        (KEYS, "openai:gpt-6-luna"),
        ({"google": "g", "anthropic": "a"}, "anthropic:claude-haiku-5-5"),
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
    assert (endpoint.id, endpoint.api_key) == ("anthropic:claude-haiku-5-5", "sk-a")


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
    assert (proxied.id, proxied.api_key) == ("openai:gpt-6-luna", "sk-o")


def test_a_key_without_a_provider_is_openais() -> None:
    endpoint = choose_llm(api_key="sk-x", model="gpt-4.1-nano", models={"extract": "gpt-4o", "decide": ""})
    assert endpoint is not None
    assert (endpoint.id, endpoint.api_key) == ("openai:gpt-4.1-nano", "sk-x")
    assert dict(endpoint.models) == {"extract": "gpt-4o"}
    assert "sk-x" not in repr(endpoint)


@pytest.mark.parametrize(
    ("alias", "name"),
    [("claude", "anthropic"), ("GEMINI", "google"), ("azure-openai", "azure_openai"), ("hf", "huggingface")],
)
def test_a_provider_goes_by_what_people_call_it(alias: str, name: str) -> None:
    found = choose_llm(provider=alias, model="m", api_key="k", base_url="https://models.example/v1/chat/completions")
    assert found is not None
    assert (found.id, found.base_url) == (f"{name}:m", "https://models.example/v1")


def test_a_key_never_changes_the_embedder() -> None:
    assert choose_embedder(keys=KEYS) is None
    assert choose_embedder(provider="local", keys=KEYS) is None
    endpoint = choose_embedder(provider="openai", keys=KEYS)
    assert endpoint is not None
    assert endpoint.id == "openai:text-embedding-3-small"


def test_anthropic_has_no_embeddings() -> None:
    with pytest.raises(ValueError, match="EMBEDDER_MODEL is not set"):
        choose_embedder(provider="anthropic", keys=KEYS)


def test_the_table() -> None:
    assert set(PRESETS) == {
        "openai", "azure_openai", "anthropic", "google", "ollama", "huggingface", "vllm", "custom",
    }  # fmt: skip
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert preset.base_url is None or not preset.base_url.endswith("/")


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
    settings = Settings.of({"embedder_provider": "openai", "embedding_dim": 768})
    assert (embedder_model(settings), embedder_dimension(settings)) == ("openai:text-embedding-3-small", 768)
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        open_embedder_of(settings, "openai:text-embedding-3-small", 768)


def test_the_previous_embedder_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Endpoint] = []
    monkeypatch.setattr(choose, "OpenAiEmbedder", lambda endpoint, *_, **__: given.append(endpoint))
    new = {"embedder_provider": "custom", "embedder_model": "new", "embedder_base_url": "http://new/v1"}
    old = {"old_embedder_base_url": "http://old/v1", "old_embedder_api_key": "old-key"}
    open_embedder_of(Settings.of(new | old), "custom:old", 768)
    assert [(each.base_url, each.api_key) for each in given] == [("http://old/v1", "old-key")]


def test_an_earlier_local_embedder_is_read_by_the_present_one() -> None:
    found = open_embedder_of(Settings.of({}), "local:earlier", 384, seldom_used=True)
    assert (found.model, found.dimension) == (embedder_model(Settings.of({})), 384)


def test_facts_are_extracted_by_a_model_of_their_own() -> None:
    endpoint = llm_endpoint(Settings.of({"openai_api_key": "k", "llm_model": "small", "extraction_model": "large"}))
    assert endpoint is not None
    assert (endpoint.model, endpoint.models) == ("small", {"extract": "large"})


def test_the_local_model_has_as_many_threads_as_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Path | None, int]] = []
    monkeypatch.setattr(choose, "EmbedderProcess", lambda folder, *, threads: given.append((folder, threads)))
    settings = Settings.of({"embedder_threads": 7, "embedder_model": "/models/own"})
    open_embedder_of(settings, embedder_model(settings), embedder_dimension(settings), seldom_used=True)
    assert given == [(Path("/models/own"), 7)]
