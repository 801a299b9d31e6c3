"""Endpoints of models, as settings choose them."""

from __future__ import annotations

from service.kit.settings import Settings
from service.providers.presets import Endpoint, embedder_endpoint, llm_endpoint


def endpoint_of_llm(**llm: str) -> Endpoint:
    """That of settings with these names behind `llm_`."""
    found = llm_endpoint(Settings.of({f"llm_{name}": value for name, value in llm.items()}))
    assert found is not None
    return found


def endpoint_of_embedder(**embedder: str) -> Endpoint:
    """That of settings with these names behind `embedder_`."""
    found = embedder_endpoint(Settings.of({f"embedder_{name}": value for name, value in embedder.items()}))
    assert found is not None
    return found
