"""The table of OpenAI-compatible providers, and the choice of one by the settings. Loads no client.

Everything by which they differ is a field here, so no other module compares provider names. `llm_endpoint` and
`embedder_endpoint` return an `Endpoint`, or None for "work without"; where a setting is missing or wrong they raise a
ValueError with a sentence that names the variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from pydantic import SecretStr

from service.kit.settings import Settings


class JsonMode(StrEnum):
    """How JSON is requested from a server: by our schema, as "some object", or only in the prompt."""

    SCHEMA = "json_schema"
    OBJECT = "json_object"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One kind of server.

    `base_url`: None where the operator has to name it. `key_variable`: where its key is found, besides LLM_API_KEY;
    `needs_key`: refuses to work without. `length_field`: how the request calls the longest answer. `sized_models`:
    prefixes of the embedding models that accept `dimensions`. `base64_vectors`: returns vectors packed in base64, a
    quarter of the bytes. `batch_texts`: texts per embedding call. `window_chars`: characters that surely fit the
    embedding model. `api_version`: Azure's, whose paths name the model. `chat_fields`: what requests to the usual chat
    model have besides, or without (None).
    """

    name: str
    base_url: str | None = None
    key_variable: str = ""
    needs_key: bool = False
    chat_model: str | None = None
    embedding_model: str | None = None
    json_mode: JsonMode = JsonMode.NONE
    length_field: str = "max_tokens"
    sized_models: tuple[str, ...] = ()
    base64_vectors: bool = False
    batch_texts: int = 100
    window_chars: int = 8_000
    api_version: str = ""
    chat_fields: Mapping[str, object] = field(default_factory=dict)


OPENAI = Preset(
    name="openai",
    base_url="https://api.openai.com/v1",
    key_variable="OPENAI_API_KEY",
    needs_key=True,
    chat_model="gpt-6-luna",  # gpt-4o-mini, 4.1-mini and 5-mini are switched off by January 2027
    embedding_model="text-embedding-3-small",
    json_mode=JsonMode.OBJECT,
    chat_fields=MappingProxyType({"reasoning_effort": "none"}),  # else it reasons at length over every message
    length_field="max_completion_tokens",  # newer models refuse max_tokens, older ones take both
    sized_models=("text-embedding-3",),
    base64_vectors=True,
)

AZURE_OPENAI = replace(
    OPENAI,  # model names are those of deployments, which customarily carry the model's name
    name="azure_openai",
    base_url=None,
    key_variable="",
    api_version="2024-10-21",  # the last dated stable version
)

ANTHROPIC = Preset(
    name="anthropic",
    base_url="https://api.anthropic.com/v1",
    key_variable="ANTHROPIC_API_KEY",
    needs_key=True,
    chat_model="claude-haiku-5-5",  # 3.5 was retired in February 2026
    chat_fields=MappingProxyType({"thinking": {"type": "disabled"}, "temperature": None}),  # it refuses a temperature
    json_mode=JsonMode.NONE,  # the compatible endpoint ignores response_format; it has no embeddings
)

GOOGLE = Preset(
    name="google",
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
    key_variable="GOOGLE_API_KEY",
    needs_key=True,
    chat_model="gemini-flash-lite-latest",  # an alias: dated Gemini models are switched off within 18 months
    embedding_model="gemini-embedding-001",
    json_mode=JsonMode.SCHEMA,
    sized_models=("gemini-embedding",),
    batch_texts=100,  # more is refused with 400; so is base64
    window_chars=4_000,  # 2,048 tokens
)

OLLAMA = Preset(
    name="ollama",
    base_url="http://localhost:11434/v1",
    chat_model="llama3.2",
    embedding_model="nomic-embed-text",
    json_mode=JsonMode.SCHEMA,
    batch_texts=32,
    window_chars=4_000,  # 2,048 tokens of context by default
)

HUGGINGFACE = Preset(
    name="huggingface",
    base_url="http://localhost:8080/v1",  # text-embeddings-inference; the hosted router needs LLM_BASE_URL
    embedding_model="sentence-transformers/all-MiniLM-L6-v2",
    batch_texts=32,  # TEI's --max-client-batch-size
    window_chars=1_000,  # 256 to 512 word pieces; TEI cuts the rest off or refuses it
)

VLLM = Preset(
    name="vllm",
    base_url="http://localhost:8000/v1",
    json_mode=JsonMode.SCHEMA,
    batch_texts=32,
    window_chars=1_000,
)

CUSTOM = Preset(name="custom", batch_texts=32, window_chars=1_000)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {preset.name: preset for preset in (OPENAI, AZURE_OPENAI, ANTHROPIC, GOOGLE, OLLAMA, HUGGINGFACE, VLLM, CUSTOM)}
)

BY_KEY = (OPENAI, ANTHROPIC, GOOGLE)
"""The providers that a key in the environment switches on; the first one found wins."""

OFF = frozenset({"none", "off", "rules"})
"""Values that mean "no LLM" although there is a key."""

LOCAL = frozenset({"local"})

ALIASES: Mapping[str, str] = MappingProxyType(
    {"claude": "anthropic", "gemini": "google", "azure": "azure_openai", "hf": "huggingface"}
)
"""Other names that people use for a provider."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Text put in front of queries and passages: the models were trained with it and lose much without."""

    query: str = ""
    passage: str = ""


PREFIXES: Mapping[str, Prefixes] = MappingProxyType(
    {
        "nomic-embed-text": Prefixes("search_query: ", "search_document: "),
        "e5-": Prefixes("query: ", "passage: "),
        "snowflake-arctic-embed": Prefixes("Represent this sentence for searching relevant passages: "),
        "mxbai-embed": Prefixes("Represent this sentence for searching relevant passages: "),
        "bge-small-en": Prefixes("Represent this sentence for searching relevant passages: "),
        "bge-base-en": Prefixes("Represent this sentence for searching relevant passages: "),
        "bge-large-en": Prefixes("Represent this sentence for searching relevant passages: "),
    }
)
"""Prefixes by a part of the model's name, from the models' cards."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A preset with everything filled in: a server ready to be called.

    `models` overrides `model` per task ("extract", "classify", ...).
    """

    preset: Preset
    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    models: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The form "provider:model", as recorded with a decision or a generation."""
        return f"{self.preset.name}:{self.model}"


def prefixes(model: str) -> Prefixes:
    """The prefixes of this embedding model; most have none."""
    return next((known for part, known in PREFIXES.items() if part in model.lower()), Prefixes())


def llm_endpoint(settings: Settings, *, or_key: str | None = None) -> Endpoint | None:
    """The language model, None for none: the named provider, else what a key or URL implies, else the first with a key.
    `or_key` stands for the key of a named one. Raises ValueError naming what is missing."""
    llm, name = settings.llm, canonical(settings.llm.provider or "")
    if name in OFF:
        return None
    key = secret(llm.api_key) or (or_key if name else None)
    preset = _find_named(name, "LLM") if name else _find_implied(key, llm.base_url, provider_keys(settings))
    if preset is None:
        return None
    models = {"extract": llm.extraction_model} if llm.extraction_model else {}
    return _endpoint(settings, preset, "LLM", llm.model or preset.chat_model, key, llm.base_url, models)


def embedder_endpoint(settings: Settings, *, or_key: str | None = None) -> Endpoint | None:
    """The hosted embedder, None for the local one. Only a named provider counts, never a key alone: changing the
    embedder means embedding everything again. Raises ValueError naming what is missing."""
    embedder, name = settings.embedder, canonical(settings.embedder.provider)
    if name in LOCAL:
        return None
    preset, key = _find_named(name, "EMBEDDER"), secret(embedder.api_key) or or_key
    return _endpoint(settings, preset, "EMBEDDER", embedder.model or preset.embedding_model, key, embedder.base_url)


def canonical(provider: str) -> str:
    """The name of a provider as the table has it, where it is there."""
    name = provider.strip().lower().replace("-", "_")
    return ALIASES.get(name, name)


def _find_named(name: str, kind: str) -> Preset:
    if name not in PRESETS:
        raise ValueError(
            f"{kind}_PROVIDER: there is no provider {name!r}. Known are {', '.join(PRESETS)}; custom is any other "
            f"OpenAI-compatible server, at {kind}_BASE_URL"
        )
    return PRESETS[name]


def _find_implied(api_key: str | None, base_url: str | None, keys: Mapping[str, str]) -> Preset | None:
    if api_key or (base_url and keys.get(OPENAI.name)):
        return OPENAI  # the default provider, also at another URL
    if base_url:
        return CUSTOM  # never with the key of a vendor that was not named
    return next((preset for preset in BY_KEY if keys.get(preset.name)), None)


def _endpoint(
    settings: Settings,
    preset: Preset,
    kind: str,
    model: str | None,
    api_key: str | None,
    base_url: str | None,
    models: Mapping[str, str] = MappingProxyType({}),
) -> Endpoint:
    url = base_url or preset.base_url
    key = api_key or provider_keys(settings).get(preset.name)
    if not url:
        raise ValueError(f"{kind}_BASE_URL is not set: the provider {preset.name} needs the address of a server")
    if not url.lower().startswith(("http://", "https://")):
        raise ValueError(f"{kind}_BASE_URL must begin with http:// or https://")
    if not model:
        other = f"; {kind}_PROVIDER names another one" if preset is CUSTOM else ""
        raise ValueError(f"{kind}_MODEL is not set: the provider {preset.name} needs the name of a model{other}")
    if preset.needs_key and not key:
        variable = f"{preset.key_variable} (or {kind}_API_KEY)" if preset.key_variable else f"{kind}_API_KEY"
        raise ValueError(f"{variable} is not set: the provider {preset.name} needs a key")
    url = url.rstrip("/").removesuffix("/chat/completions").removesuffix("/embeddings")
    return Endpoint(preset, url, model, key, models)


def check_endpoints(settings: Settings, *, or_key: str | None = None) -> None:
    """Raises ValueError with a sentence that names the variable, where a model cannot be reached by these settings.
    `or_key` stands for keys that are not there: migrations have none."""
    llm_endpoint(settings, or_key=or_key)
    embedder_endpoint(settings, or_key=or_key)


def find_unused(settings: Settings) -> str | None:
    """A sentence where a model is named and none is in use."""
    named = next((name for name in ("llm_model", "extraction_model") if settings.value(name)), None)
    if not named or llm_endpoint(settings) or canonical(settings.llm.provider or "") in OFF:
        return None
    return f"{named.upper()} is set, but there is no language model: set the key of a provider, or LLM_BASE_URL."


def provider_keys(settings: Settings) -> dict[str, str]:
    """The keys of providers that have a variable of their own, by the name of their preset."""
    by_name = {
        "openai": settings.llm.openai_api_key,
        "anthropic": settings.llm.anthropic_api_key,
        "google": settings.llm.google_api_key,
    }
    return {name: key.get_secret_value() for name, key in by_name.items() if key}


def secret(value: SecretStr | None) -> str | None:
    """The value of a key, None without one."""
    return value.get_secret_value() if value is not None else None
