"""One generator in Python, one in TypeScript, and our own client in it, with ALL_CLIENTS: fetching the tools
takes minutes. `make sdk` has all, and what reads the document."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

import pytest

from bench import target
from bench.target import Service
from tests.sdk import client_typescript
from tests.sdk.generators import DOCUMENT, GENERATORS, has_node, install_node, install_python, lint

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with target.started() as found:
        yield found


@pytest.mark.skipif(not os.environ.get("ALL_CLIENTS"), reason="only with ALL_CLIENTS")
def test_a_client_in_python_walks_through_the_service(service: Service) -> None:
    install_python()
    GENERATORS["openapi-python-client"].prove(service.url, service.key)


@pytest.mark.skipif(not (os.environ.get("ALL_CLIENTS") and has_node()), reason="only with ALL_CLIENTS, and needs npm")
def test_a_client_in_typescript_walks_through_the_service(service: Service) -> None:
    install_node()
    lint()
    GENERATORS["openapi-typescript"].prove(service.url, service.key)


@pytest.mark.skipif(not (os.environ.get("ALL_CLIENTS") and has_node()), reason="only with ALL_CLIENTS, and needs npm")
def test_our_client_in_typescript_is_built_packed_and_used(service: Service) -> None:
    client_typescript.prove(service)


def test_our_client_in_typescript_repeats_only_what_may_be_repeated() -> None:
    """Its list of POST routes that change nothing: they are there, and take no Idempotency-Key."""
    source = (client_typescript.SOURCE / "src" / "http.ts").read_text()
    (listed,) = re.findall(r"const READS = new Set\(\[(.*?)\]\)", source, re.DOTALL)
    reads = re.findall(r'"POST (/[^"]+)"', listed)
    paths = json.loads(DOCUMENT.read_text())["paths"]
    for path in reads:
        operation = paths[path]["post"]
        assert "Idempotency-Key" not in [each["name"] for each in operation.get("parameters", [])], path
        assert "Needs `memory:read`." in operation["description"], path
    assert len(reads) == 4
