"""One of the generators on every run; `make sdk` has all, and what reads the document. With LOXODON_ALL_CLIENTS one in
TypeScript, too: fetching its tools takes minutes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from bench import target
from bench.target import Service
from tests.sdk.generators import GENERATORS, has_node, install_node, install_python, lint

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with target.started() as found:
        yield found


def test_a_client_in_python_walks_through_the_service(service: Service) -> None:
    install_python()
    GENERATORS["openapi-python-client"].prove(service.url, service.key)


@pytest.mark.skipif(
    not (os.environ.get("LOXODON_ALL_CLIENTS") and has_node()), reason="only with LOXODON_ALL_CLIENTS, and needs npm"
)
def test_a_client_in_typescript_walks_through_the_service(service: Service) -> None:
    install_node()
    lint()
    GENERATORS["openapi-typescript"].prove(service.url, service.key)
