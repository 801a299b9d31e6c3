"""Requests that no honest client sends: 400 or 413 with the field, nothing stored, nothing repeated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import structlog
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.domain.sizes import MAX_BODY_BYTES
from tests.app.test_openapi import operations
from tests.conftest import DIMENSION, Tenant
from tests.support.application import Tables
from tests.support.calls import listed

CANARY = "quokka7731"
"""Stands in every bad request: no error body and no log line may hold it."""

CACHES = ("embedding_cache", "llm_cache")
STORE = "/v1/memories"
GOOD: dict[str, Any] = {"content": f"Feeds the {CANARY} at noon", "user_id": "iris"}
SURROGATE = "\ud83d"
NUL = "a\x00b"


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as lines:
        yield lines


async def send(client: AsyncClient, body: Any, path: str = STORE) -> tuple[int, dict[str, Any]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await client.post(path, content=raw, headers={"Content-Type": "application/json"})
    assert "traceback" not in answer.text.lower()
    assert "SELECT" not in answer.text
    assert CANARY not in answer.text, answer.text
    return answer.status_code, answer.json()


async def refused(
    client: AsyncClient,
    tables: Tables,
    tenant: Tenant,
    logged: list[Any],
    body: Any,
    field: str | None,
    *,
    status: int = 400,
    path: str = STORE,
) -> dict[str, Any]:
    before = await tables.counts(tenant.workspace_id, leave_out=CACHES)
    code, answer = await send(client, body, path)
    assert code == status, answer
    assert answer["field"], answer
    if field is not None:
        assert answer["field"] == field, answer
    assert {"type", "title", "status", "detail", "error", "code", "request_id"} <= answer.keys()
    assert await tables.counts(tenant.workspace_id, leave_out=CACHES) == before
    assert CANARY not in str(logged)
    return answer


def deep(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = {"k": found}
    return found


def but(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


BODIES: list[tuple[str, Any, str | None]] = [
    ("empty content", but(content=""), "content"),
    ("blank content", but(content=" \t\n　"), "content"),
    ("invisible content", but(content="\u200b \u2060\u202e"), "content"),
    ("content is a number", but(content=5), "content"),
    ("content is null", but(content=None), None),
    ("content is a list", but(content=[CANARY]), "content"),
    ("neither content nor messages", {"user_id": CANARY}, "content"),
    ("both content and messages", but(messages=[{"role": "user", "content": CANARY}]), "content"),
    ("messages empty", {"messages": [], "infer": False, "user_id": "iris"}, "messages"),
    ("messages without a text", {"messages": [{"role": "user", "content": " "}], "infer": False, "user_id": "i"}, None),
    ("message of another type", {"messages": [CANARY], "infer": False, "user_id": "iris"}, None),
    ("message without a role", {"messages": [{"content": CANARY}], "user_id": "iris"}, "messages[0].role"),
    (
        "message with a long role",
        {"messages": [{"role": "r" * 21, "content": "x"}], "user_id": "i"},
        "messages[0].role",
    ),
    ("message with an unknown field", {"messages": [{"role": "user", "content": "x", "y": 1}], "user_id": "i"}, None),
    ("message content is a number", {"messages": [{"role": "user", "content": 1}], "user_id": "i"}, None),
    ("unknown field", but(colour="red"), "colour"),
    ("user_id is a number", but(user_id=1), "user_id"),
    ("user_id is empty", but(user_id=""), "user_id"),
    ("user_id is blank", but(user_id="  "), "user_id"),
    ("user_id is too long", but(user_id="u" * 256), "user_id"),
    ("channel too long", but(channel="c" * 101), "channel"),
    ("no scope", {"content": f"Feeds the {CANARY}"}, "user_id"),
    ("id is no UUID", but(id="not-a-uuid"), "id"),
    ("id is a number", but(id=7), "id"),
    ("unknown type", but(type="Opinion"), "type"),
    ("type in lower case", but(type="decision"), "type"),
    ("type is a number", but(type=1), "type"),
    ("type_confidence above 1", but(type_confidence=1.01), "type_confidence"),
    ("importance above 1", but(importance=1.5), "importance"),
    ("importance below 0", but(importance=-0.1), "importance"),
    ("importance is a word", but(importance="0.5"), "importance"),
    ("importance is false", but(importance=False), "importance"),
    ("importance_level 0", but(importance_level=0), "importance_level"),
    ("importance_level 11", but(importance_level=11), "importance_level"),
    ("importance_level is true", but(importance_level=True), "importance_level"),
    ("importance_level is 5.0", but(importance_level=5.5), "importance_level"),
    ("importance_level is text", but(importance_level="5"), "importance_level"),
    ("both importances", but(importance=0.5, importance_level=5), "importance"),
    ("dedup is 0", but(dedup=0), "dedup"),
    ("dedup is text", but(dedup="false"), "dedup"),
    ("infer is 1", but(infer=1), "infer"),
    ("dry_run is text", but(dry_run="yes"), "dry_run"),
    ("limits is another word", but(limits="loose"), "limits"),
    ("tags is a number", but(tags=3), None),
    ("tags holds a number", but(tags=["a", 3]), None),
    ("101 tags", but(tags=[f"t{n}" for n in range(101)]), "tags"),
    ("metadata is a list", but(metadata=[1]), "metadata"),
    ("metadata is a text", but(metadata=CANARY), "metadata"),
    ("timestamp is no time", but(timestamp="yesterday"), "timestamp"),
    ("timestamp is a number", but(timestamp=1_700_000_000), "timestamp"),
    ("timestamp in February", but(timestamp="2026-02-30T00:00:00Z"), "timestamp"),
    ("timestamp beyond time", but(timestamp="9999-12-31T23:59:59-14:00"), "timestamp"),
    ("timestamp before time", but(timestamp="0001-01-01T00:00:00+14:00"), "timestamp"),
    ("expires_at in the past", but(expires_at="2020-01-01T00:00:00Z"), "expires_at"),
    ("timezone of nowhere", but(timezone="Mars/Olympus"), "timezone"),
    ("timezone is a path", but(timezone="../../etc/passwd"), "timezone"),
    ("timezone is an offset", but(timezone="+02:00"), "timezone"),
    ("timezone is a folder", but(timezone="Europe"), "timezone"),
    ("timezone is empty", but(timezone=""), "timezone"),
    ("t_valid after t_invalid", but(t_valid="2026-02-01T00:00:00Z", t_invalid="2026-01-01T00:00:00Z"), "t_valid"),
    ("t_valid equals t_invalid", but(t_valid="2026-02-01T00:00:00Z", t_invalid="2026-02-01T00:00:00Z"), None),
    ("embedding of another length", but(embedding=[0.1] * (DIMENSION - 1)), "embedding"),
    ("embedding empty", but(embedding=[]), "embedding"),
    ("embedding of zeros", but(embedding=[0.0] * DIMENSION), "embedding"),
    ("embedding too large for a float32", but(embedding=[1e308] * DIMENSION), "embedding"),
    ("embedding of texts", but(embedding=["0.1"] * DIMENSION), None),
    ("embedding of booleans", but(embedding=[True] * DIMENSION), None),
    ("embedding with null", but(embedding=[None] * DIMENSION), None),
    ("prompt with content", but(prompt="Find facts"), "prompt"),
    ("filters with content", but(filters={"field": "k", "operator": "eq", "value": 1}), "filters"),
    ("filters of another form", but(filters={"a": 1}), "filters.a"),
    ("a list", [GOOD], None),
    ("a text", CANARY, None),
    ("null", None, None),
    ("surrogate in content", but(content=f"x{SURROGATE}"), "content"),
    ("surrogate in user_id", but(user_id=SURROGATE), "user_id"),
    ("surrogate in a tag", but(tags=["a", SURROGATE]), "tags[1]"),
    ("surrogate in a metadata value", but(metadata={"deep": [{"k": SURROGATE}]}), "metadata.deep[0].k"),
    ("surrogate in a metadata key", but(metadata={SURROGATE: 1}), "metadata"),
    ("surrogate in a message", {"messages": [{"role": "user", "content": SURROGATE}], "user_id": "i"}, None),
    ("surrogate in an unknown field", but(**{SURROGATE: 1}), None),
    ("NUL in content", but(content=NUL), "content"),
    ("NUL in user_id", but(user_id=NUL), "user_id"),
    ("NUL in a tag", but(tags=[NUL]), "tags[0]"),
    ("NUL in tags as text", but(tags=NUL), "tags"),
    ("NUL in a metadata value", but(metadata={"k": NUL}), "metadata.k"),
    ("NUL in a metadata key", but(metadata={NUL: 1}), "metadata"),
    ("NUL in a speaker", {"messages": [{"role": "user", "content": "x", "name": NUL}], "user_id": "i"}, None),
    ("metadata too deep", but(metadata=deep(33)), None),
    ("metadata endlessly deep", but(metadata=deep(900)), None),
]


@pytest.mark.parametrize(("body", "field"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
async def test_refused_bodies(
    client: AsyncClient, tables: Tables, tenant: Tenant, logged: list[Any], body: Any, field: str | None
) -> None:
    await refused(client, tables, tenant, logged, body, field)


OTHER_BODIES: list[tuple[str, Any, str | None]] = [
    ("/v1/memories/search", {"query": "x"}, "user_id"),
    ("/v1/memories/search", {"query": "", "user_id": "i"}, "query"),
    ("/v1/memories/search", {"query": "  ", "user_id": "i"}, "query"),
    ("/v1/memories/search", {"query": 5, "user_id": "i"}, "query"),
    ("/v1/memories/search", {"query": "x", "user_id": "i", "limit": True}, "limit"),
    ("/v1/memories/search", {"query": "x", "user_id": "i", "limit": "5"}, "limit"),
    ("/v1/memories/search", {"query": "x", "user_id": "i", "limit": 1_001}, "limit"),
    ("/v1/memories/search", {"query": "x", "user_id": "i", "top": 3}, "top"),
    ("/v1/memories/search", {"query": f"x{SURROGATE}", "user_id": "i"}, "query"),
    ("/v1/memories/search", {"query": NUL, "user_id": "i"}, "query"),
    ("/v1/api-keys", {"name": "x", "rights": []}, "rights"),
    ("/v1/api-keys", {"name": "x", "rights": [f"memory:{CANARY}"]}, None),
    ("/v1/api-keys", {"name": "x", "rights": "memory:read"}, "rights"),
    ("/v1/api-keys", {"name": " ", "rights": ["memory:read"]}, "name"),
    ("/v1/api-keys", {"name": "x", "rights": ["memory:read"], "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ("/v1/api-keys", {"name": "x", "rights": ["memory:read"], "workspace_id": str(UUID(int=7))}, "workspace_id"),
    ("/v1/api-keys", {"name": "x", "rights": ["memory:read"], "expires_at": "never"}, "expires_at"),
    (
        "/v1/memories/batch",
        {"items": [GOOD, but(content="")]},
        "items[1].content",
    ),
    ("/v1/memories/batch", {"items": []}, "items"),
]


@pytest.mark.parametrize(("path", "body", "field"), OTHER_BODIES)
async def test_refused_bodies_of_other_routes(
    client: AsyncClient, tables: Tables, tenant: Tenant, logged: list[Any], path: str, body: Any, field: str | None
) -> None:
    await refused(client, tables, tenant, logged, body, field, path=path)


RAW: list[tuple[str, bytes]] = [
    ("empty", b""),
    ("not JSON", b"{content: " + CANARY.encode()),
    ("half", b'{"content": "quokka7731"'),
    ("two values", b'{"content": "x", "user_id": "i"} {"quokka7731": 1}'),
    ("invalid UTF-8", b'{"content": "\xff\xfe quokka7731", "user_id": "i"}'),
    ("a surrogate in UTF-8", b'{"content": "\xed\xa0\xbd", "user_id": "i"}'),
    ("overlong NUL", b'{"content": "\xc0\x80", "user_id": "i"}'),
    ("UTF-16", json.dumps(GOOD).encode("utf-16")),
    ("NaN", b'{"content": "x", "user_id": "i", "metadata": {"k": NaN}}'),
    ("Infinity", b'{"content": "x", "user_id": "i", "importance": Infinity}'),
    ("-Infinity", b'{"content": "x", "user_id": "i", "metadata": {"k": -Infinity}}'),
    ("1e999", b'{"content": "x", "user_id": "i", "metadata": {"k": 1e999}}'),
    ("-1e999 as importance", b'{"content": "x", "user_id": "i", "importance": -1e999}'),
    ("a whole number beyond 1e308", b'{"content": "x", "user_id": "i", "metadata": {"k": 9' + b"0" * 308 + b"}}"),
    ("a huge number as importance", b'{"content": "x", "user_id": "i", "importance": 9' + b"0" * 308 + b"}"),
    ("a huge number in a vector", b'{"content": "x", "user_id": "i", "embedding": [9' + b"0" * 308 + b"]}"),
    ("a number of 10,000 digits", b'{"content": "x", "user_id": "i", "metadata": {"k": ' + b"9" * 10_000 + b"}}"),
    ("100,000 brackets", b"[" * 100_000),
    ("5 MB", b'{"user_id": "i", "content": "' + b"quokka7731 " * 470_000 + b'"}'),
]


@pytest.mark.parametrize("raw", [row[1] for row in RAW], ids=[row[0] for row in RAW])
async def test_refused_bytes(
    client: AsyncClient, tables: Tables, tenant: Tenant, logged: list[Any], raw: bytes
) -> None:
    await refused(client, tables, tenant, logged, raw, None, status=413 if len(raw) > MAX_BODY_BYTES else 400)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ('"metadata": {"a": [{"k": NaN}]}', "metadata.a[0].k"),
        ('"importance": Infinity', "importance"),
        ('"metadata": {"k": -1e999}', "metadata.k"),
        ('"metadata": {"k": [1, ' + "9" * 400 + "]}", "metadata.k[1]"),
        ('"filters": {"AND": [{"field": "k", "operator": "in", "value": [1, NaN]}]}', "filters.AND[0].value[1]"),
    ],
)
async def test_what_is_no_number_is_named_by_its_place(client: AsyncClient, given: str, field: str) -> None:
    raw = f'{{"content": "x", "user_id": "i", {given}}}'
    answer = await client.post(STORE, content=raw, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["field"]) == (400, field), answer.text


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
@pytest.mark.parametrize("key", [None, "k1"])
async def test_a_body_that_is_not_said_to_be_json(client: AsyncClient, kind: str, key: str | None) -> None:
    headers = {"Content-Type": kind, **({"Idempotency-Key": key} if key else {})}
    for raw in (b"quokka7731", b"{", b"[" * 50_000, json.dumps(GOOD).encode()):
        answer = await client.post(STORE, content=raw, headers=headers)
        assert answer.status_code in (400, 415), (kind, key, raw[:20], answer.text)
        assert CANARY not in answer.text


LONG = "".join(chr(0x1F300 + n % 700) for n in range(255))
"""255 characters of four bytes each."""


async def test_the_longest_names_are_stored_or_refused_but_no_accident(client: AsyncClient) -> None:
    """An index row of Postgres holds 2,704 bytes; three ids and a channel of four-byte letters are more."""
    where = {"user_id": LONG, "agent_id": LONG[::-1], "run_id": LONG[100:] + LONG[:100], "channel": LONG[:100]}
    code, answer = await send(client, {"content": "A note", **where})
    assert code in (201, 400), answer
    said = {"messages": [{"role": "user", "content": "A note"}], "infer": False, **where}
    code, answer = await send(client, said)
    assert code in (201, 400), answer


async def test_the_longest_plain_names_are_stored(client: AsyncClient) -> None:
    where = {"user_id": "u" * 255, "agent_id": "a" * 255, "run_id": "r" * 255, "channel": "c" * 100}
    code, answer = await send(client, {"content": "A note", **where, "session_id": "s" * 255})
    assert code == 201, answer


async def test_more_different_words_than_a_sparse_vector_holds(client: AsyncClient) -> None:
    """pgvector's sparsevec takes 16,000 elements."""
    words = " ".join(f"w{number:x}q" for number in range(20_000))
    code, answer = await send(client, {"content": words, "user_id": "iris"})
    assert code in (201, 400), answer


@pytest.mark.parametrize("moment", ["0002-01-01T00:00:00Z", "9998-12-31T23:59:59Z"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
async def test_relative_dates_at_the_edge_of_time(client: AsyncClient, moment: str, zone: str) -> None:
    text = "The meeting moved from yesterday at 3pm to tomorrow at 11pm, and next year it is again."
    code, answer = await send(client, {"content": text, "user_id": "iris", "timestamp": moment, "timezone": zone})
    assert code == 201, answer


QUERIES: list[tuple[str, str, str | None]] = [
    ("no scope", "/v1/memories?limit=5", "user_id"),
    ("limit 0", "/v1/memories?user_id=i&limit=0", "limit"),
    ("limit 1001", "/v1/memories?user_id=i&limit=1001", "limit"),
    ("limit is a word", "/v1/memories?user_id=i&limit=quokka7731", "limit"),
    ("limit is a float", "/v1/memories?user_id=i&limit=1.5", "limit"),
    ("cursor of somebody else", "/v1/memories?user_id=i&cursor=quokka7731", "cursor"),
    ("cursor with letters beyond ASCII", "/v1/memories?user_id=i&cursor=%C3%A9", "cursor"),
    ("NUL in a query", "/v1/memories?user_id=a%00b", "query"),
    ("invalid UTF-8 in a query", "/v1/memories?user_id=%ff%fe", "query"),
    ("surrogate in a query", "/v1/memories?user_id=%ED%A0%BD", "query"),
    ("empty user", "/v1/memories?user_id=", "user_id"),
    ("no question", "/v1/memories/search?user_id=i", None),
    ("blank question", "/v1/memories/search?user_id=i&query=%20", None),
    ("two questions", "/v1/memories/search?user_id=i&query=a&query=b", None),
    ("no scope for a search", "/v1/memories/search?query=quokka7731", "user_id"),
    ("a bad start", "/v1/memories/search?user_id=i&query=a&start=soon", "start"),
    ("a bad validity", "/v1/memories/search?user_id=i&query=a&validity=perhaps", "validity"),
    ("end before start", "/v1/memories/search?user_id=i&query=a&start=2026-01-02&end=2026-01-01", "start"),
    ("NUL in a search", "/v1/memories/search?user_id=i&query=a%00b", "query"),
]


@pytest.mark.parametrize(("path", "field"), [row[1:] for row in QUERIES], ids=[row[0] for row in QUERIES])
async def test_refused_queries(client: AsyncClient, logged: list[Any], path: str, field: str | None) -> None:
    answer = await client.get(path)
    assert answer.status_code == 400, answer.text
    assert answer.json()["field"], answer.text
    assert field is None or answer.json()["field"] == field
    assert CANARY not in answer.text
    assert CANARY not in str(logged)


@pytest.mark.parametrize("path", ["/v1/memories/{}", "/v1/memories/{}/history", "/v1/operations/{}"])
@pytest.mark.parametrize(
    "name", [str(UUID(int=7)), "fake-id", "1", "%20", "..%2F..", "x" * 3_000, "😀", "'; DROP TABLE memory"]
)
async def test_unknown_ids_are_not_found(client: AsyncClient, path: str, name: str) -> None:
    answer = await client.get(path.format(name))
    assert answer.status_code == 404, answer.text
    assert answer.json()["code"] == "not_found"


@pytest.mark.parametrize("path", ["/v1/memories/a%00b", "/v1/memories/%ff", "/v1/%ED%A0%BD", "/v1/operations/%00"])
async def test_paths_that_no_text_column_could_hold(client: AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.json()["field"]) == (400, "path")


async def test_headers_that_no_text_column_could_hold(client: AsyncClient) -> None:
    for value in (b"a\xff\xfeb", "ké".encode("latin-1"), b"\xed\xa0\xbd", b" "):
        answer = await client.post(STORE, json=GOOD, headers={b"Idempotency-Key": value})
        assert answer.status_code in (200, 201, 400), (value, answer.text)
    answer = await client.post(STORE, json=GOOD, headers={"Idempotency-Key": "k" * 256})
    assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key")
    assert "kkkk" not in answer.text


async def test_names_as_long_as_their_columns(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    """varchar(200) behind a model that takes 255 would be a 500."""
    for length in (200, 201, 255, 256):
        made = await client.post("/v1/api-keys", json={"name": "k" * length, "rights": ["memory:read"]})
        assert made.status_code == (201 if length == 200 else 400), made.text
        made = await client.post("/v1/workspaces", json={"name": "w" * length})
        assert made.status_code == (201 if length == 200 else 400), made.text
    changed = await client.patch("/v1/workspaces/current", json={"name": "w" * 201})
    assert (changed.status_code, changed.json()["field"]) == (400, "name")


async def test_an_accident_tells_nothing(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"{CANARY} in SELECT * FROM memory")

    monkeypatch.setattr("service.intake.routes.store.store", broken)
    answer = await client.post(STORE, json=GOOD)
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal_error"
    assert CANARY not in answer.text
    assert CANARY not in str(logged)
    assert any(line["event"] == "unexpected" for line in logged)


async def test_a_route_without_a_body_refuses_one(client: AsyncClient, app: FastAPI) -> None:
    assert (await client.post(STORE, json=GOOD)).status_code == 201
    bodiless = [
        (method, re.sub(r"{\w+}", "0190", path))
        for method, path, operation in operations(app.openapi())
        if method in ("post", "put", "patch", "delete") and "requestBody" not in operation
    ]
    assert ("delete", "/v1/memories") in bodiless
    assert ("post", "/v1/reset") in bodiless
    for method, path in bodiless:
        answer = await client.request(method, path, json={"dry_run": True}, params={"user_id": "iris"})
        assert (answer.status_code, answer.json()["field"]) == (400, "dry_run"), (method, path, answer.text)
        form = await client.request(method, path, content=b"dry_run=1", params={"user_id": "iris"})
        assert (form.status_code, form.json()["field"]) == (400, "body"), (method, path, form.text)
    assert len(await listed(client, user_id="iris")) == 1
    emptied = await client.request("delete", "/v1/memories", json={}, params={"user_id": "iris"})
    assert emptied.json()["deleted"] == 1


async def test_a_text_that_is_too_long_is_counted_in_characters(client: AsyncClient) -> None:
    answer = await client.post("/v1/goals", json={"description": "x" * 300_000, "user_id": "iris"})
    assert (answer.status_code, answer.json()["field"]) == (400, "description")
    assert answer.json()["detail"].endswith("characters")
