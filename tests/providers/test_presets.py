from __future__ import annotations

from pathlib import Path

import pytest

from service.kit.settings import Settings
from service.providers import choose
from service.providers.choose import embedder_dimension, embedder_model, open_embedder_of
from service.providers.presets import PRESETS, Endpoint, embedder_endpoint, llm_endpoint, prefixes

KEYS = {"openai_api_key": "sk-o", "anthropic_api_key": "sk-a", "google_api_key": "g"}


def llm_of(**settings: str) -> Endpoint:
    found = llm_endpoint(Settings.of(settings))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, None),
        ({"openai_api_key": ""}, None),
        (KEYS, "openai:gpt-6-luna"),
        ({"google_api_key": "g", "anthropic_api_key": "a"}, "anthropic:claude-haiku-5-5"),
        ({"google_api_key": "g"}, "google:gemini-flash-lite-latest"),
        *(({**KEYS, "llm_provider": off}, None) for off in ("none", "off", "rules")),
    ],
)
def test_a_key_switches_the_llm_on_unless_it_is_kept_off(keys: dict[str, str], expected: str | None) -> None:
    endpoint = llm_endpoint(Settings.of(keys))
    assert (endpoint.id if endpoint else None) == expected


def test_the_named_provider_wins() -> None:
    endpoint = llm_of(llm_provider=" Anthropic ", **KEYS)
    assert (endpoint.id, endpoint.api_key) == ("anthropic:claude-haiku-5-5", "sk-a")


def test_an_url_without_a_provider() -> None:
    url = "http://127.0.0.1:9/v1/"
    ours = llm_of(llm_base_url=url, llm_model="m", anthropic_api_key="sk-a")
    assert (ours.id, ours.base_url, ours.api_key) == ("custom:m", "http://127.0.0.1:9/v1", None)
    proxied = llm_of(llm_base_url=url, **KEYS)
    assert (proxied.id, proxied.api_key) == ("openai:gpt-6-luna", "sk-o")


def test_a_key_without_a_provider_is_openais() -> None:
    endpoint = llm_of(llm_api_key="sk-x", llm_model="gpt-4.1-nano", extraction_model="gpt-4o")
    assert (endpoint.id, endpoint.api_key) == ("openai:gpt-4.1-nano", "sk-x")
    assert dict(endpoint.models) == {"extract": "gpt-4o"}
    assert "sk-x" not in repr(endpoint)


@pytest.mark.parametrize(
    ("alias", "name"),
    [("claude", "anthropic"), ("GEMINI", "google"), ("azure-openai", "azure_openai"), ("hf", "huggingface")],
)
def test_a_provider_goes_by_what_people_call_it(alias: str, name: str) -> None:
    url = "https://models.example/v1/chat/completions"
    found = llm_of(llm_provider=alias, llm_model="m", llm_api_key="k", llm_base_url=url)
    assert (found.id, found.base_url) == (f"{name}:m", "https://models.example/v1")


def test_a_key_never_changes_the_embedder() -> None:
    assert embedder_endpoint(Settings.of(KEYS)) is None
    endpoint = embedder_endpoint(Settings.of({"embedder_provider": "openai", **KEYS}))
    assert endpoint is not None
    assert endpoint.id == "openai:text-embedding-3-small"


def test_anthropic_has_no_embeddings() -> None:
    with pytest.raises(ValueError, match="EMBEDDER_MODEL is not set"):
        embedder_endpoint(Settings.of({"embedder_provider": "anthropic", **KEYS}))


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


def test_the_local_model_has_as_many_threads_as_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Path | None, int]] = []
    monkeypatch.setattr(choose, "EmbedderProcess", lambda folder, *, threads: given.append((folder, threads)))
    settings = Settings.of({"embedder_threads": 7, "embedder_model": "/models/own"})
    open_embedder_of(settings, embedder_model(settings), embedder_dimension(settings), seldom_used=True)
    assert given == [(Path("/models/own"), 7)]
