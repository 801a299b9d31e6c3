from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from service.domain.errors import TooLarge
from service.kit.settings import PER_WORKSPACE, PLACES, PREFIX, UNPREFIXED, Settings, SettingsError
from service.memories import pipeline
from service.providers import presets
from service.providers.protocols import LlmRequest
from service.understanding import model_calls

TESTS = Path(__file__).parents[1]
DOCUMENT = (TESTS.parent / "docs" / "configuration.md").read_text()


def test_nothing_needs_to_be_set() -> None:
    assert Settings.from_env({}).embedder.provider == "local"


@pytest.mark.parametrize("name", sorted(PLACES))
def test_every_variable_is_documented(name: str) -> None:
    assert f"`{PREFIX}{name.upper()}`" in DOCUMENT


def test_the_prefixed_name_wins() -> None:
    env = {"DATABASE_URL": "postgresql://bare", "LOXODON_DATABASE_URL": "postgresql://prefixed"}
    url = Settings.from_env(env).database.url
    assert url is not None
    assert url.get_secret_value() == "postgresql+asyncpg://prefixed"


@pytest.mark.parametrize(
    ("variable", "value"),
    [("LOXODON_PORT", "http"), ("LOXODON_DEDUP_EXACT", "1.5"), ("LOXODON_EMBEDDING_DIM", "100")],
)
def test_an_unusable_value_names_its_variable(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=variable):
        Settings.from_env({variable: value})


@pytest.mark.parametrize("variable", ["LOXODON_BOOTSTRAP_API_KEY", "AUTOMEM_API_TOKEN"])
def test_a_first_key_that_could_be_guessed_is_refused_and_not_shown(variable: str) -> None:
    with pytest.raises(SettingsError, match=r"LOXODON_BOOTSTRAP_API_KEY: .*at least 20 characters") as caught:
        Settings.from_env({variable: "nineteen-characters"})
    assert "nineteen" not in str(caught.value)
    assert Settings.from_env({variable: "just-twenty-letters!"}).server.bootstrap_api_key is not None


@pytest.mark.parametrize(
    "key", ["schlüssel-mit-zwanzig-zeichen", "twenty characters or more", "just-twenty-letters!\r"]
)
def test_a_first_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(SettingsError, match=r"^LOXODON_BOOTSTRAP_API_KEY: must be of ASCII letters") as caught:
        Settings.from_env({"LOXODON_BOOTSTRAP_API_KEY": key})
    assert key not in str(caught.value)


def numbers(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The numbers of a JSON schema, with the names that they have."""
    for name, inside in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if isinstance(inside, dict) and inside.get("type") in ("integer", "number"):
            yield str(name), inside
        if isinstance(inside, dict | list):
            yield from numbers(inside)


def test_every_number_has_bounds() -> None:
    ends = {"maximum", "exclusiveMaximum", "enum"}
    unbounded = [name for name, schema in numbers(Settings.model_json_schema()) if not ends & schema.keys()]
    assert unbounded == []


@pytest.mark.parametrize("kind", ["AUDIT", "HISTORY", "MEMORY"])
def test_days_that_no_date_can_have_are_refused(kind: str) -> None:
    with pytest.raises(SettingsError, match=f"LOXODON_{kind}_RETENTION_DAYS: .* 36500"):
        Settings.from_env({f"LOXODON_{kind}_RETENTION_DAYS": "999999999"})


def test_an_unknown_technique_is_named() -> None:
    with pytest.raises(SettingsError, match=r"LOXODON_SEARCH_TECHNIQUES\.hybird: "):
        Settings.from_env({"LOXODON_SEARCH_TECHNIQUES": '{"hybird": true}'})


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("postgres://me@db/memories", "postgresql+asyncpg://me@db/memories"),
        ("postgresql://me@db/memories?sslmode=require", "postgresql+asyncpg://me@db/memories?ssl=require"),
    ],
)
def test_any_spelling_of_a_postgres_url_is_understood(given: str, read: str) -> None:
    url = Settings.from_env({"DATABASE_URL": given}).database.url
    assert url is not None
    assert url.get_secret_value() == read


def test_a_dimension_is_read_from_text() -> None:
    assert Settings.from_env({"LOXODON_EMBEDDING_DIM": "768"}).embedder.dim == 768


def test_an_empty_variable_is_an_unset_one() -> None:
    assert Settings.from_env({"LOXODON_PORT": ""}).server.port == 8080


def test_a_workspace_overrides_its_own_settings_only() -> None:
    base = Settings.from_env({})
    changed = base.for_workspace({"dedup_near": 0.8, "port": 1})
    assert (changed.memories.dedup_near, changed.server.port) == (0.8, base.server.port)
    assert set(PLACES) >= PER_WORKSPACE | set(UNPREFIXED)


@pytest.mark.parametrize("where", ["own", "granted"])
def test_a_stored_retention_beyond_the_limit_is_cut_to_it(where: str) -> None:
    stored = {"memory_retention_days": 5_000_000}
    changed = Settings.from_env({}).for_workspace({"granted": stored} if where == "granted" else stored)
    assert changed.memories.retention_days == 36_500


def test_secrets_are_masked_when_shown() -> None:
    shown = Settings.from_env({"OPENAI_API_KEY": "sk-very-secret"}).model_dump(mode="json")
    assert "very-secret" not in str(shown)


def test_either_name_of_a_vendor_is_read() -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        key = Settings.from_env({name: "secret"}).llm.google_api_key
        assert key is not None
        assert key.get_secret_value() == "secret"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LOXODON_LLM_MODLE", ": did you mean LOXODON_LLM_MODEL?"),
        ("LOXODON_PROT", ": did you mean LOXODON_PORT?"),
        ("LOXODON_XYZZY_QUUX", "."),
        ("LLM_MODELL", ": did you mean LLM_MODEL?"),
        ("LLM_TEMPERATURE", ": did you mean LOXODON_LLM_TEMPERATURE?"),
        ("EMBEDDER_PROVIDR", ": did you mean EMBEDDER_PROVIDER?"),
    ],
)
def test_a_misspelt_variable_is_named(name: str, meant: str) -> None:
    assert Settings.misspelt({name: "x"}) == [f"{name} is not a setting{meant}"]


def test_what_is_read_or_belongs_to_others_is_not_misspelt() -> None:
    names = [PREFIX + name.upper() for name in PLACES]
    others = ["LOXODON_PG_BIN", "LOXODON_API_PASSWORD", "LLM_GATEWAY_SECRET", "OPENAI_ORG_ID", "PATH", "GEMINI_API_KEY"]
    assert Settings.misspelt(dict.fromkeys([*names, *UNPREFIXED.values(), *others], "x")) == []


def test_limits_of_a_text() -> None:
    few = Settings.of({"content_soft_limit": 3, "content_hard_limit": 5})
    assert pipeline.length_warnings("abc", strict=True, settings=few) == ()
    assert pipeline.length_warnings("abcd", strict=True, settings=few)[0].startswith("long_content")
    with pytest.raises(TooLarge, match="at most 5"):
        pipeline.length_warnings("abcdef", strict=True, settings=few)


def test_keys_of_providers() -> None:
    env = {"ANTHROPIC_API_KEY": "a", "EMBEDDER_PROVIDER": "openai", "EMBEDDER_API_KEY": "e"}
    settings = Settings.from_env(env)
    assert presets.provider_keys(settings) == {"anthropic": "a"}
    endpoint = presets.embedder_endpoint(settings)
    assert endpoint is not None
    assert endpoint.api_key == "e"


def test_a_prompt_is_held_to_what_is_set() -> None:
    settings = Settings.of({"llm_max_tokens": 16, "llm_timeout_s": 2})
    asked = model_calls.tune(LlmRequest("decide", "system", "user"), settings)
    assert (asked.max_tokens, asked.deadline_s) == (16, 2)


WORDS = [set(re.findall(r"\w+", file.read_text())) for file in TESTS.rglob("*.py")]


def leaves() -> Iterator[tuple[str, str]]:
    """Every setting by flat name, with each field of those that are objects."""
    for name in PLACES:
        value = Settings().value(name)
        fields = list(type(value).model_fields) if isinstance(value, BaseModel) else [name]
        yield from ((name, field) for field in fields)


def test_standbys_are_read_from_one_variable() -> None:
    """A URL of several hosts has commas of its own."""
    given = "postgresql://a:b@one/db , postgresql://a:b@/db?host=two,three&port=1,2,"
    settings = Settings.from_env({"LOXODON_READ_DATABASE_URL": given, "LOXODON_READ_MAX_LAG_S": "2"})
    urls = [each.get_secret_value() for each in settings.value("read_database_url")]
    assert [url.partition("//")[2].partition("?")[0] for url in urls] == ["a:b@one/db", "a:b@/db"]
    assert settings.value("read_max_lag_s") == 2
    with pytest.raises(SettingsError, match="LOXODON_READ_DATABASE_URL"):
        Settings.from_env({"LOXODON_READ_DATABASE_URL": "mysql://one/db"})


@pytest.mark.parametrize(("name", "field"), list(leaves()))
def test_every_setting_is_named_in_a_test(name: str, field: str) -> None:
    """By its flat name or a variable, and an object with the field, in one file."""
    names = {name, PREFIX + name.upper(), UNPREFIXED.get(name)}
    assert any(names & words and (field == name or field in words) for words in WORDS)


def test_a_removed_setting_is_named() -> None:
    assert Settings.misspelt({"LOXODON_VERSION": "v1.0"})[0].startswith("LOXODON_VERSION is not a setting")
