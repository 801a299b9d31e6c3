"""Providers meet a real HTTP server on the loopback; only the waits are short."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from service.providers.openai_client import ClientOptions
from tests.fakes.openai_server import OpenAiServer


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as running:
        yield running


@pytest.fixture
def quick() -> ClientOptions:
    return ClientOptions(timeout_s=5.0, base_delay_s=0.01)
