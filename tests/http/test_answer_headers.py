"""Headers of every answer, scripts of other origins, and the page /docs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import AsyncClient

from service.access.statements import keys
from service.domain.errors import StoreUnavailable
from service.http import middleware
from service.kit.settings import Settings, SettingsError
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import client_of, serving

PAGE = "https://app.example"
PREFLIGHT = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
}
ANSWERS: list[tuple[str, str, dict[str, Any], int]] = [
    ("GET", "/v1/memories?user_id=iris", {}, 200),
    ("POST", "/v1/memories", {"json": {"content": "Feeds the heron", "user_id": "iris"}}, 201),
    ("DELETE", "/v1/memories?user_id=nobody", {}, 200),
    ("GET", "/v1/memories?user_id=iris", {"headers": {"Authorization": "Bearer wrong"}}, 401),
    ("GET", "/v1/memories", {}, 400),
    ("POST", "/v1/memories", {"content": b'{"content": "\x00"}'}, 400),
    ("POST", "/v1/memories", {"content": b"\xff"}, 400),
    ("POST", "/v1/memories", {"content": b" " * 4_000_001}, 413),
    ("GET", "/v1/nowhere", {}, 404),
    ("PUT", "/v1/stats", {}, 405),
    ("OPTIONS", "/v1/memories", {}, 405),
    ("GET", "/livez", {}, 200),
    ("GET", "/readyz", {}, 200),
    ("GET", "/metrics", {}, 200),
    ("GET", "/docs", {}, 200),
    ("GET", "/docs/assets/swagger-ui.css", {}, 200),
    ("GET", "/openapi.json", {}, 200),
]


@pytest.mark.parametrize(("method", "path", "sent", "status"), ANSWERS, ids=lambda value: str(value)[:30])
async def test_every_answer_is_kept_by_nobody_and_taken_for_what_it_is(
    client: AsyncClient, method: str, path: str, sent: dict[str, Any], status: int
) -> None:
    answer = await client.request(method, path, **sent)
    assert answer.status_code == status, answer.text
    assert answer.headers.get_list("cache-control") == ["no-store"]
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert "server" not in answer.headers


@pytest.mark.parametrize(("error", "status"), [(RuntimeError("a bug"), 500), (StoreUnavailable("away"), 503)])
async def test_failures_too(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(keys, "listing", fail)
    answer = await client.get("/v1/api-keys")
    assert answer.status_code == status
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.fixture
async def with_page(resources: Resources, settings: Settings, tenant: Tenant) -> AsyncIterator[AsyncClient]:
    """A service that PAGE may call from a browser."""
    shared = replace(resources, settings=settings.changed(cors_origins=(PAGE,)))
    async with serving(shared) as app, client_of(app, tenant.key) as client:
        yield client


def words_of_cors(answer: Any) -> set[str]:
    return {name for name in answer.headers if name.startswith("access-control")}


async def test_cors_is_off(client: AsyncClient) -> None:
    asked = await client.options("/v1/memories", headers=PREFLIGHT)
    assert (asked.status_code, words_of_cors(asked)) == (405, set())
    assert words_of_cors(await client.get("/v1/memories?user_id=iris", headers={"Origin": PAGE})) == set()


async def test_a_listed_origin_may_call(with_page: AsyncClient) -> None:
    asked = await with_page.options("/v1/memories", headers=PREFLIGHT)
    assert asked.status_code == 200
    assert asked.headers["access-control-allow-origin"] == PAGE
    allowed = {name.strip().lower() for name in asked.headers["access-control-allow-headers"].split(",")}
    assert set(PREFLIGHT["Access-Control-Request-Headers"].split(",")) <= allowed
    assert asked.headers["cache-control"] == "no-store"
    assert "Origin" in asked.headers["vary"]
    for path, headers, status in (
        ("/v1/memories?user_id=iris", {}, 200),
        ("/v1/memories?user_id=iris", {"Authorization": "Bearer wrong"}, 401),
        ("/v1/nowhere", {}, 404),
    ):
        answer = await with_page.get(path, headers={"Origin": PAGE, **headers})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, PAGE)
        assert "X-Request-ID" in answer.headers["access-control-expose-headers"]
        assert "Origin" in answer.headers["vary"]
    large = await with_page.post("/v1/memories", content=b" " * 4_000_001, headers={"Origin": PAGE})
    assert (large.status_code, large.headers["access-control-allow-origin"]) == (413, PAGE), "a page can read why"


@pytest.mark.parametrize("origin", ["https://evil.example", "http://app.example", f"{PAGE}.evil.example", "null"])
async def test_another_origin_may_not(with_page: AsyncClient, origin: str) -> None:
    asked = await with_page.options("/v1/memories", headers=PREFLIGHT | {"Origin": origin})
    assert asked.status_code == 400
    assert "access-control-allow-origin" not in asked.headers
    answer = await with_page.get("/v1/memories?user_id=iris", headers={"Origin": origin})
    assert "access-control-allow-origin" not in answer.headers


async def test_a_browser_sends_no_cookies_along(with_page: AsyncClient) -> None:
    asked = await with_page.options("/v1/memories", headers=PREFLIGHT)
    answer = await with_page.get("/v1/memories?user_id=iris", headers={"Origin": PAGE})
    assert "access-control-allow-credentials" not in words_of_cors(asked) | words_of_cors(answer)


@pytest.mark.parametrize(
    "given", ["*", "app.example", f"{PAGE}/", f"{PAGE}/path", "null", "https://*.example", "file:///x"]
)
def test_only_whole_origins_are_listed(given: str) -> None:
    with pytest.raises(SettingsError, match="LOXODON_CORS_ORIGINS"):
        Settings.from_env({"LOXODON_CORS_ORIGINS": given})


def test_origins_stand_between_commas() -> None:
    found = Settings.from_env({"LOXODON_CORS_ORIGINS": f"{PAGE}, http://127.0.0.1:3000,"})
    assert found.server.cors_origins == (PAGE, "http://127.0.0.1:3000")


def test_browsers_may_send_what_the_document_names(app: Any) -> None:
    named = {
        each["name"].lower()
        for methods in app.openapi()["paths"].values()
        for operation in methods.values()
        for each in operation.get("parameters", [])
        if each["in"] == "header"
    }
    assert named <= {name.lower() for name in middleware.BROWSERS_MAY_SEND}


async def test_the_page_loads_nothing_from_elsewhere(anonymous: AsyncClient) -> None:
    page = await anonymous.get("/docs")
    assert "//" not in re.sub(r"<!--.*?-->", "", page.text), "no address of another machine"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    answers = await asyncio.gather(*(anonymous.get(path) for path in loaded))
    assert len(loaded) == 3
    assert {answer.status_code for answer in answers} == {200}


async def test_page_and_document_can_be_switched_off(resources: Resources, settings: Settings, tenant: Tenant) -> None:
    closed = replace(resources, settings=settings.changed(serve_docs=False))
    async with serving(closed) as app, client_of(app, tenant.key) as client:
        for path in ("/docs", "/openapi.json", "/docs/assets/swagger-ui.css"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["detail"]) == (404, "There is no such route.")
        assert (await client.get("/v1/whoami")).status_code == 200
