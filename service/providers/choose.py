"""Opens the embedder and the language model that the settings name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.domain.errors import EmbeddingError
from service.domain.text import CleanText
from service.kit.settings import Settings
from service.providers.local import DIMENSION, MODEL, EmbedderProcess, LocalEmbedder
from service.providers.openai_client import ClientOptions
from service.providers.openai_embedder import OpenAiEmbedder
from service.providers.openai_llm import OpenAiLlm
from service.providers.presets import Endpoint, canonical, embedder_endpoint, llm_endpoint
from service.providers.protocols import Embedder, Llm, Vector

EMBEDDER_TIMEOUT_S = 10.0
"""The longest time for one batch of a hosted embedder, retries included."""

LLM_ATTEMPT_S = 12.0
"""One attempt at a request to the language model: after one that hangs there is time for another."""


def embedder_model(settings: Settings) -> str:
    """The id that the first embedding generation records, without loading anything; migrations have no key for it."""
    endpoint = embedder_endpoint(settings, or_key="none")
    return endpoint.id if endpoint else MODEL


def embedder_dimension(settings: Settings) -> int:
    """The length of the vectors of the configured embedder."""
    return settings.embedder.dim if embedder_endpoint(settings, or_key="none") else DIMENSION


def open_embedder_of(settings: Settings, model: str, dimension: int, *, seldom_used: bool = False) -> Embedder:
    """The embedder that a generation records: the configured one, or another that these settings can still reach; if
    they cannot, one that fails each call and says why. Loading the local model takes about a second; with `seldom_used`
    it is loaded on first use, in a separate process."""
    if (model, dimension) == (embedder_model(settings), embedder_dimension(settings)):
        return _open_embedder(settings, embedder_endpoint(settings), dimension, seldom_used=seldom_used)
    provider, _, name = model.partition(":")
    is_same = provider == canonical(settings.embedder.provider)
    key = settings.embedder.old_api_key or (settings.embedder.api_key if is_same else None)
    url = settings.embedder.old_base_url or (settings.embedder.base_url if is_same else None)
    previous = {"provider": provider, "model": name, "api_key": key, "base_url": url}
    try:
        endpoint = embedder_endpoint(
            settings.model_copy(update={"embedder": settings.embedder.model_copy(update=previous)})
        )
    except ValueError as exc:
        return MissingEmbedder(model, dimension, str(exc))
    return _open_embedder(settings, endpoint, dimension, seldom_used=seldom_used)


def _open_embedder(settings: Settings, endpoint: Endpoint | None, dimension: int, *, seldom_used: bool) -> Embedder:
    if endpoint is None:
        open_local = EmbedderProcess if seldom_used else LocalEmbedder.load
        return open_local(
            Path(settings.embedder.model) if settings.embedder.model else None,
            threads=settings.embedder.threads,
        )
    return OpenAiEmbedder(endpoint, dimension, ClientOptions(timeout_s=EMBEDDER_TIMEOUT_S))


CONCURRENCY = 32
"""Requests of the language model in flight per process; more wait."""


def open_llm(settings: Settings) -> Llm | None:
    """The configured language model; None without a key."""
    endpoint = llm_endpoint(settings)
    if endpoint is None:
        return None
    attempt_s = min(LLM_ATTEMPT_S, settings.llm.timeout_s)
    options = ClientOptions(timeout_s=attempt_s, concurrency=CONCURRENCY)
    return OpenAiLlm(endpoint, options)


@dataclass(frozen=True, slots=True)
class MissingEmbedder(Embedder):
    """Fails every call, as an embedder that is unavailable does: searches use words only, and vectors are made later.
    `reason`: what the settings lack."""

    model: str
    dimension: int
    reason: str

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        """Always raises EmbeddingError."""
        raise EmbeddingError(f"The embedder {self.model} cannot be opened with these settings: {self.reason}.")

    async def embed_query(self, text: CleanText) -> Vector:
        """Always raises EmbeddingError."""
        return (await self.embed([text]))[0]
