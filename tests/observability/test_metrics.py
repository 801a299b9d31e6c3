"""What /metrics tells: the numbers there are, their names and labels, and that alerts and dashboard know no others."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from httpx2 import AsyncClient
from prometheus_client.parser import text_string_to_metric_families

from service.domain.errors import StoreUnavailable
from service.providers.openai_client import ClientOptions
from service.providers.openai_llm import OpenAiLlm
from service.runtime.resources import Resources
from service.worker import loop
from service.worker.monitoring import KEPT_S, Scrape
from tests.conftest import Tenant
from tests.fakes.openai_server import OpenAiServer
from tests.support.application import Tables, client_of, serving
from tests.support.calls import opened, said
from tests.support.endpoints import endpoint_of_llm

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "rules.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "loxodon.json"
NAME = re.compile(r"\b(?:loxodon|process|python)_[a-z0-9_]+\b")
SELECTOR = re.compile(r"\b(loxodon_[a-z0-9_]+)\{([^}]*)\}")
FROM_PROMETHEUS = {"job", "instance", "le"}

assert loop.JOBS_DONE, "the worker's metrics are registered by its module"


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    """Of alerts and of the dashboard."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    shown = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return [*(alert["expr"] for alert in alerts()), *shown]


@pytest.fixture
async def llm() -> AsyncIterator[OpenAiLlm]:
    with OpenAiServer() as server:
        server.chat.default(lambda _: {"facts": []})
        endpoint = endpoint_of_llm(provider="custom", model="small", base_url=server.base_url)
        found = OpenAiLlm(endpoint, ClientOptions(timeout_s=5))
        yield found
        await found.close()


def samples(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Values by name and labels."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            found.setdefault(each.name, {})[tuple(sorted(each.labels.items()))] = each.value
    return found


async def used(client: AsyncClient) -> None:
    """A bit of everything that is counted."""
    said = [{"role": "user", "content": "I moved to Lisbon last month."}]
    for body in ({"content": "Ada-the-user likes tea."}, {"messages": said}, {"messages": said, "infer": False}):
        assert (await client.post("/v1/memories", json={**body, "user_id": "ada-17"})).status_code in (200, 201)
    search = {"query": "What does she drink?", "user_id": "ada-17"}
    assert (await client.post("/v1/memories/search", json=search)).status_code == 200
    assert (await client.get("/v1/memories/no-such-id")).status_code == 404
    assert (await client.request("BREW", "/v1/memories")).status_code == 405
    assert (await client.get("/v1/working/s1/items/none?user_id=ada-17")).status_code == 404


async def test_what_is_counted(resources: Resources, tenant: Tenant, llm: OpenAiLlm, tables: Tables) -> None:
    async with serving(replace(resources, llm=llm)) as app, client_of(app, tenant.key) as client:
        await used(client)
        await tables.fetch("ANALYZE memory")
        text = (await client.get("/metrics")).text
    found = samples(text)
    routes = {dict(labels)["route"] for labels in found["loxodon_http_requests_total"]}
    assert {"/v1/memories", "/v1/memories/search", "/v1/memories/{id}"} <= routes
    methods = {dict(labels)["method"] for labels in found["loxodon_http_requests_total"]}
    assert "other" in methods
    assert "BREW" not in methods
    assert found["loxodon_http_request_seconds_count"][("method", "POST"), ("route", "/v1/memories")] >= 3
    assert found["loxodon_http_requests_running"][()] >= 1
    assert {dict(labels)["stage"] for labels in found["loxodon_stage_seconds_count"]} >= {"pii", "embed", "annotate"}
    assert found["loxodon_pool_connections"][(("state", "idle"),)] > 0
    assert found["loxodon_pool_wait_seconds_count"][()] > 5
    assert found["loxodon_scope_lock_seconds_count"][()] >= 1
    assert found["loxodon_queue_jobs"][("kind", "enrich"), ("state", "due")] >= 1
    assert found["loxodon_queue_age_seconds"][(("kind", "enrich"),)] > 0
    assert found["loxodon_queue_age_seconds"][(("kind", "vacuum"),)] >= 0
    assert found["loxodon_table_rows"][(("table", "memory"),)] >= 1
    assert found["loxodon_table_bytes"][(("table", "memory_vector"),)] > 0
    assert not {dict(labels)["table"] for labels in found["loxodon_table_rows"]} & {"memory_vector_p0"}
    assert found["loxodon_database_up"] == {(): 1.0}
    called = [dict(labels) for labels in found["loxodon_model_calls_total"]]
    assert {"provider": "custom", "model": "small", "task": "extract", "outcome": "answered"} in called
    assert found["loxodon_model_tokens_total"][("direction", "prompt"), ("model", "small"), ("provider", "custom")] > 0
    assert (("model", "small"), ("provider", "custom")) in found["loxodon_model_cost_total"]
    assert found["loxodon_cache_lookups_total"][("cache", "embedding"), ("outcome", "miss")] >= 1
    assert found["loxodon_cache_lookups_total"][("cache", "working_memory"), ("outcome", "miss")] >= 1
    for secret in ("ada-17", "tea", "Lisbon", str(tenant.workspace_id), tenant.key):
        assert secret not in text


async def test_the_api_tells_what_jobs_did(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    """From the database: a worker need not be asked. The last decay of the workspace counts."""
    there = await opened(client, "talk")
    await said(client, there, "I work in Bergen.")
    await tables.fetch("INSERT INTO schedule VALUES ('decay', 86400, now()) ON CONFLICT DO NOTHING")
    for hours, changed in ((2, 5_000), (1, 700_000)):
        await tables.fetch(
            "INSERT INTO job (workspace_id, id, kind, reason, state, max_attempts, counts, created_at) VALUES "
            "($1, gen_random_uuid(), 'decay', 'schedule', 'done', 3, "
            " jsonb_build_object('changed', $2::integer, 'examples_until', 9), now() - make_interval(hours => $3))",
            *(tenant.workspace_id, changed, hours),
        )
    await tables.fetch(
        "INSERT INTO job (workspace_id, id, kind, payload, state, max_attempts, finished_at) VALUES "
        "($1, gen_random_uuid(), 'consolidate', jsonb_build_object('conversation_id', $2::text, 'last', 0), 'done', 3, "
        " now() + interval '2 hours')",
        *(tenant.workspace_id, there),
    )
    found = samples((await client.get("/metrics")).text)
    assert 700_000 <= found["loxodon_job_items"][("kind", "decay"), ("what", "changed")] < 705_000
    assert not [labels for labels in found["loxodon_job_items"] if ("what", "examples_until") in labels]
    assert found["loxodon_consolidation_lag_seconds"][()] == pytest.approx(7_200, abs=60)


async def test_without_the_database_the_process_still_tells_of_itself(resources: Resources) -> None:
    class Away:
        """A pool whose database is gone."""

        def __getattr__(self, name: str) -> Any:
            return getattr(resources.db, name)

        def read(self, *_: object, **__: object) -> None:
            raise StoreUnavailable("It is away.")

    now = 0.0
    scrape = Scrape(replace(resources, db=Away()), clock=lambda: now)  # type: ignore[arg-type]
    assert samples((await scrape.text()).decode())["loxodon_database_up"][()] == 0
    scrape._res = resources
    assert samples((await scrape.text()).decode())["loxodon_database_up"][()] == 0, "a look is kept for some seconds"
    now = KEPT_S
    assert samples((await scrape.text()).decode())["loxodon_database_up"][()] == 1


async def test_alerts_and_dashboard_name_what_exists(client: AsyncClient) -> None:
    """Names, and the labels that their selectors ask for."""
    families = list(text_string_to_metric_families((await client.get("/metrics")).text))
    names = {family.name + end for family in families for end in ("", "_total", "_bucket", "_sum", "_count")}
    labels = {family.name: set(family.samples[0].labels) for family in families if family.samples}
    for expression in expressions():
        unknown = set(NAME.findall(expression)) - names
        assert not unknown, f"{unknown} in {expression}"
        for name, selector in SELECTOR.findall(expression):
            asked = set(re.findall(r"(\w+)\s*[=!]~?", selector)) - FROM_PROMETHEUS
            known = labels.get(re.sub(r"_(total|bucket|sum|count)$", "", name))
            assert known is None or asked <= known, f"{asked - known} of {name}"


def test_each_alert_has_its_section() -> None:
    headings = set(re.findall(r"^## (\w+)$", (ROOT / "docs" / "alerts.md").read_text(), re.MULTILINE))
    for alert in alerts():
        assert alert["annotations"]["runbook"] == f"docs/alerts.md#{alert['alert'].lower()}"
        assert alert["labels"]["severity"] in ("critical", "warning", "info")
        assert alert["annotations"]["summary"]
    assert headings == {alert["alert"] for alert in alerts()}


def test_each_metric_is_explained(resources: Resources) -> None:
    from prometheus_client import REGISTRY

    explained = (ROOT / "docs" / "metrics.md").read_text()
    for family in REGISTRY.collect():
        assert not family.name.startswith("loxodon_") or family.name in explained, family.name
