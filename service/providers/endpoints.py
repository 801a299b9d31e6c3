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
    if settings.rerank_provider == "http" and not settings.rerank_url:
        raise ValueError("LOXODON_RERANK_URL is not set: LOXODON_RERANK_PROVIDER=http needs it")


def unused(settings: Settings) -> str | None:
    """A sentence where a model is named and none is in use."""
    names = ("llm_model", "extraction_model", "decision_model", "classifier_model")
    named = next((name for name in names if getattr(settings, name)), None)
    if not named or llm_endpoint(settings) or canonical(settings.llm_provider or "") in OFF:
        return None
    return f"{named.upper()} is set, but there is no language model: set the key of a provider, or LLM_BASE_URL."


def llm_endpoint(settings: Settings, *, or_key: str | None = None) -> Endpoint | None:
    """The language model; None without one."""
    return choose_llm(
        provider=settings.llm_provider,
        model=settings.llm_model,
        api_key=secret(settings.llm_api_key) or (or_key if settings.llm_provider else None),
        base_url=settings.llm_base_url,
        models=task_models(settings),
        keys=keys(settings),
    )


def task_models(settings: Settings) -> dict[str, str]:
    """The models of tasks that have one of their own; empty where they have not."""
    return {
        "extract": settings.extraction_model or "",
        "decide": settings.decision_model or "",
        "classify": settings.classifier_model or "",
    }


def embedder_endpoint(settings: Settings, *, or_key: str | None = None) -> Endpoint | None:
    """The hosted embedder; None for the local one."""
    return choose_embedder(
        provider=settings.embedder_provider,
        model=settings.embedder_model,
        api_key=secret(settings.embedder_api_key) or or_key,
        base_url=settings.embedder_base_url,
        keys=keys(settings),
    )


def keys(settings: Settings) -> dict[str, str]:
    """The keys of providers, by the name of their preset."""
    found = {
        "openai": settings.openai_api_key,
        "anthropic": settings.anthropic_api_key,
        "google": settings.google_api_key,
        "azure_openai": settings.azure_openai_api_key,
        "huggingface": settings.huggingface_api_key,
        "vllm": settings.vllm_api_key,
    }
    return {name: key.get_secret_value() for name, key in found.items() if key}


def secret(value: SecretStr | None) -> str | None:
    """Its value."""
    return value.get_secret_value() if value is not None else None
