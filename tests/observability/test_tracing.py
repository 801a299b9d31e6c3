"""Traces, as a collector gets them: request, stage, provider; and nothing at all while they are off."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import structlog
from httpx2 import AsyncClient

from service.observability import tracing
from service.postgres.engine import Database
from service.providers.openai_client import ClientOptions
from service.providers.openai_embedder import OpenAiEmbedder
from service.providers.openai_llm import OpenAiLlm
from service.runtime.embedding import with_caches
from service.runtime.resources import Resources
from tests.conftest import DIMENSION, Tenant
from tests.fakes.collector import Collector, SeenSpan
from tests.fakes.openai_server import OpenAiServer
from tests.support.application import client_of, serving
from tests.support.endpoints import endpoint_of_embedder, endpoint_of_llm

CALLER = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = {"traceparent": f"00-{CALLER}-b7ad6b7169203331-01"}
SERVER, CLIENT = 2, 3


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """One that this process sends its spans to."""
    with Collector() as found:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": found.endpoint, "OTEL_SERVICE_NAME": "memories"}
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        yield found
        tracing.shut_down()


@pytest.fixture
def models() -> Iterator[OpenAiServer]:
    with OpenAiServer(DIMENSION) as found:
        found.chat.default({"facts": ["Lives in Lisbon"]})
        yield found


@asynccontextmanager
async def asking(
    resources: Resources, tenant: Tenant, database: Database, models: OpenAiServer
) -> AsyncIterator[AsyncClient]:
    """A client of the service with hosted models."""
    hosted = endpoint_of_embedder(provider="openai", api_key="k", base_url=models.base_url)
    chat = endpoint_of_llm(provider="custom", model="small", base_url=models.base_url)
    options = ClientOptions(timeout_s=5)
    embedder = with_caches(OpenAiEmbedder(hosted, DIMENSION, options), database)
    res = replace(resources, embedder=embedder, llm=OpenAiLlm(chat, options))
    async with serving(res) as app, client_of(app, tenant.key) as client:
        yield client
        tracing.shut_down()
    await embedder.close()
    await res.llm.close()  # type: ignore[union-attr]


def beginning(collector: Collector, name: str) -> list[SeenSpan]:
    return [each for each in collector.spans if each.name.startswith(name)]


async def test_a_store_and_a_search_are_one_tree_each(
    collector: Collector, resources: Resources, tenant: Tenant, database: Database, models: OpenAiServer
) -> None:
    tracing.set_up({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "OTEL_SERVICE_NAME": "memories"}, "api")
    said = {"messages": [{"role": "user", "content": "I moved to Lisbon, my secret is xyzzy."}], "user_id": "ada"}
    async with asking(resources, tenant, database, models) as client:
        with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
            stored = await client.post("/v1/memories", json=said, headers=TRACEPARENT)
        assert stored.status_code == 200, stored.text
        found = await client.post("/v1/memories/search", json={"query": "Where does xyzzy live?", "user_id": "ada"})
        assert found.status_code == 200
        assert (await client.post("/v1/memories/search", json={"query": "x"})).status_code == 400
    assert collector.paths == {"/v1/traces"}
    store = collector.named("POST /v1/memories")
    assert (store.trace, store.parent, store.kind) == (CALLER, "b7ad6b7169203331", SERVER)
    assert store.attributes["http.route"] == "/v1/memories"
    assert store.attributes["http.response.status_code"] == 200
    assert store.attributes["workspace"] == str(tenant.workspace_id)
    assert store.resource["service.name"] == "memories"
    assert store.resource["loxodon.process"] == "api"
    # request > stage > provider
    [chat] = [each for each in beginning(collector, "chat small") if each.trace == CALLER][:1]
    assert chat.kind == CLIENT
    assert chat.attributes["gen_ai.request.model"] == "small"
    assert collector.above(chat)[-1] == store.name
    embeddings = [each for each in beginning(collector, "embeddings") if each.trace == CALLER]
    assert any(collector.above(each)[:2] == ["embed", "embed"] for each in embeddings), "call, embedder, stage"
    # what providers get
    sent = models.chat.requests[0].headers["traceparent"]
    assert re.fullmatch(rf"00-{CALLER}-[0-9a-f]{{16}}-01", sent)
    assert sent.split("-")[2] == chat.id
    # the search is a trace of its own
    [search, refused] = beginning(collector, "POST /v1/memories/search")
    assert (search.parent, search.trace != CALLER) == ("", True)
    assert refused.attributes["http.response.status_code"] == 400
    assert collector.above(collector.named("candidates")) == ["read", search.name]
    # nothing quotes anybody
    assert "xyzzy" not in repr(collector.spans)
    assert tenant.key not in repr(collector.spans)
    assert {line["trace_id"] for line in lines if line["event"] == "request"} == {CALLER}


async def test_an_error_is_told_by_its_class(collector: Collector, resources: Resources) -> None:
    tracing.set_up({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}, "worker")
    with pytest.raises(ValueError, match="secret"), tracing.span("job enrich", "CONSUMER"):
        raise ValueError("a secret text")
    tracing.shut_down()
    seen = collector.named("job enrich")
    assert (seen.failed, seen.attributes["error.type"]) == (True, "ValueError")
    assert "secret" not in repr(seen)


@pytest.mark.parametrize(
    ("env", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_decide(env: dict[str, str], wanted: bool) -> None:
    assert tracing.is_wanted(env) is wanted


@pytest.mark.parametrize(
    ("given", "trace"),
    [
        (TRACEPARENT["traceparent"], CALLER),
        (f"cc-{CALLER}-b7ad6b7169203331-01-of-the-future", CALLER),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", None),
        (f"00-{CALLER}-{'0' * 16}-01", None),
        ("nonsense", None),
        ("00-<script>-b7ad6b7169203331-01", None),
    ],
)
def test_while_off_the_log_has_the_callers_trace(given: str, trace: str | None) -> None:
    assert tracing.trace_id([(b"traceparent", given.encode())]) == trace
    assert tracing.headers() == {}


@pytest.mark.parametrize(
    ("module", "loaded"), [("service.app.main", {"opentelemetry"}), ("service.worker.loop", set())]
)
def test_while_off_nothing_of_opentelemetry_is_loaded(module: str, loaded: set[str]) -> None:
    """But for the interface without anything behind it, which FastAPI imports by itself."""
    program = (
        f"import sys, {module}; from service.observability import tracing; tracing.set_up({{}}, 'api')\n"
        "with tracing.span('x'): pass\n"
        "print(*(name for name in sys.modules if name.startswith('opentelemetry')))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in found if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]
    assert {name.partition(".")[0] for name in found} == loaded


def test_without_the_packages_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    tracing.set_up({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, "api")
    assert tracing._tracer is None
    assert "pip install opentelemetry-sdk" in caplog.text
