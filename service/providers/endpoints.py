"""The endpoints that the settings name, and what is wrong with those settings. Loads no client."""

from __future__ import annotations

from pydantic import SecretStr

from service.kit.settings import Settings
from service.providers.presets import OFF, Endpoint, canonical, choose_embedder, choose_llm


def check(settings: Settings, *, or_key: str | None = None) -> None:
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


def llm_endpoint(settings: Settings, *, or_key: str | None = None) -> Endpoint | None:
    """The language model; None without one."""
    return choose_llm(
        provider=settings.llm.provider,
        model=settings.llm.model,
        api_key=secret(settings.llm.api_key) or (or_key if settings.llm.provider else None),
        base_url=settings.llm.base_url,
        models={"extract": settings.llm.extraction_model or ""},
        keys=keys(settings),
    )


def embedder_endpoint(settings: Settings, *, or_key: str | None = None) -> Endpoint | None:
    """The hosted embedder; None for the local one."""
    return choose_embedder(
        provider=settings.embedder.provider,
        model=settings.embedder.model,
        api_key=secret(settings.embedder.api_key) or or_key,
        base_url=settings.embedder.base_url,
        keys=keys(settings),
    )


def keys(settings: Settings) -> dict[str, str]:
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
