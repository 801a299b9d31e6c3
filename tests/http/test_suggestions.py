"""A refusal suggests what would have been right."""

from __future__ import annotations

import gzip
import importlib
import json
import pkgutil
import re
from typing import Any

import pytest
from httpx2 import AsyncClient
from pydantic import ValidationError

import service
from service.http.schemas import RequestModel
from tests.support.calls import store

FILTER = "known names: field, operator, value, AND, OR, NOT."
JSON = {"Content-Type": "application/json"}


async def told(client: AsyncClient, method: str, path: str, **sent: Any) -> tuple[int, str | None, str]:
    answer = await client.request(method, path, **sent)
    found = answer.json()
    return answer.status_code, found["field"], found["error"]


@pytest.mark.parametrize(
    ("path", "body", "field", "hint"),
    [
        ("memories", {"userId": "alice", "content": "x"}, "userId", "; did you mean user_id?"),
        ("memories", {"user_id": "alice", "contents": "x"}, "contents", "; did you mean content?"),
        ("memories", {"user_id": "alice", "text": "x"}, "text", "; known names: user_id, agent_id, "),
        (
            "memories",
            {"user_id": "alice", "messages": [{"role": "user", "contnet": "x"}]},
            "messages[0].contnet",
            "; did you mean content?",
        ),
        (
            "memories/batch",
            {"items": [{"user_id": "alice", "content": "x"}, {"user_id": "alice", "tag": "x"}]},
            "items[1].tag",
            "; did you mean tags?",
        ),
        ("memories/search", {"user_id": "alice", "qeury": "x"}, "qeury", "; did you mean query?"),
        (
            "memories/search",
            {"user_id": "alice", "query": "x", "tuning": {"techniques": {"hydee": True}}},
            "tuning.techniques.hydee",
            "; did you mean hyde?",
        ),
        (
            "memories/search",
            {"user_id": "alice", "query": "x", "filters": {"and": []}},
            "filters.and",
            "; did you mean AND?",
        ),
        (
            "memories/search",
            {"user_id": "alice", "query": "x", "filters": {"AND": [{"NOT": {"user_id": "bob"}}]}},
            "filters.AND[0].NOT.user_id",
            f'; {FILTER} A condition is {{"field": ..., "operator": "eq", "value": ...}}.',
        ),
        ("goals", {"user_id": "alice", "title": "x"}, "title", ", channel, description, priority, "),
        ("memories/batch", {"memories": []}, "memories", "; known names: items."),
        ("recall", {"user_id": "alice", "query": "x", "include": {"goal": False}}, "include.goal", "mean goals?"),
    ],
)
async def test_a_field_nobody_reads_is_told_its_right_name(
    client: AsyncClient, path: str, body: Any, field: str, hint: str
) -> None:
    status, named, error = await told(client, "POST", f"/v1/{path}", json=body)
    assert (status, named) == (400, field)
    assert error.startswith(f"{field}: is not a field of this request; ")
    assert hint in error


@pytest.mark.parametrize(
    ("query", "field", "hint"),
    [
        ("limt=1", "limt", "; did you mean limit?"),
        ("weights={}", "weights", "; known names: "),
        ('filters={"feld": "tag"}', "filters.feld", "; did you mean field?"),
        ("filters={", "filters", "filters: is not valid JSON: Expecting property name"),
        ("query=b", "query", "query: must be given only once."),
        ("user_id=bob", "user_id", "user_id: must be given only once."),
    ],
)
async def test_so_is_a_parameter(client: AsyncClient, query: str, field: str, hint: str) -> None:
    status, named, error = await told(client, "GET", f"/v1/memories/search?user_id=alice&query=a&{query}")
    assert (status, named) == (400, field)
    assert error.startswith(f"{field}: ")
    assert hint in error


async def test_a_parameter_may_be_repeated_where_it_is_a_list_or_the_same(client: AsyncClient) -> None:
    await store(client, "Likes tea", tags=["drink"])
    for query in ("tags=drink&tags=food", "types=Preference&types=Context", "query=tea"):
        answer = await client.get(f"/v1/memories/search?user_id=alice&query=tea&{query}")
        assert answer.status_code == 200, answer.text


async def test_a_delete_of_two_users_takes_nobody(client: AsyncClient) -> None:
    await store(client, "Likes tea")
    status, named, _ = await told(client, "DELETE", "/v1/memories?user_id=alice&user_id=bob")
    assert (status, named) == (400, "user_id")
    assert len((await client.get("/v1/memories", params={"user_id": "alice"})).json()["results"]) == 1


@pytest.mark.parametrize(
    ("body", "field", "error"),
    [
        ('{"user_id": "a", "content": "x", "content": "y"}', "content", "content: is a duplicate key; send it once."),
        (
            '{"user_id": "a", "content": "x", "metadata": {"b": [{"c": 1, "d": 2, "c": 3}]}}',
            "metadata.b[0].c",
            "metadata.b[0].c: is a duplicate key; send it once.",
        ),
        ("", "body", "body: is missing: send a JSON object"),
        (
            '{"user_id": "a",}',
            "body",
            "The body is not valid JSON: Illegal trailing comma before end of object (line 1, column 16).",
        ),
        ('{"user_id": "a", "content": ""}', "content", "content: must not be empty"),
        ('{"user_id": "", "content": "x"}', "user_id", "user_id: must not be empty"),
    ],
)
async def test_what_is_wrong_with_a_body(client: AsyncClient, body: str, field: str, error: str) -> None:
    answer = await told(client, "POST", "/v1/memories", content=body.encode(), headers=JSON)
    if "trailing comma" in error:  # Python 3.11 and 3.12 have other words for it, of the same place or the next
        assert answer[:2] == (400, field)
        assert "(line 1, column 1" in answer[2]
        return
    assert answer == (400, field, error)


async def test_a_key_given_twice_that_cannot_be_shown_is_refused_all_the_same(client: AsyncClient) -> None:
    body = b'{"user_id": "a", "content": "x", "metadata": {"\\ud800": 1, "\\ud800": 2}}'
    answer = await told(client, "POST", "/v1/memories", content=body, headers=JSON)
    assert answer == (400, "metadata", "metadata: contains a lone surrogate.")


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/json"}, {"Content-Type": "application/json, text/x"}])
async def test_a_body_without_a_content_type_is_told_how(client: AsyncClient, headers: dict[str, str]) -> None:
    sent = b'{"content": "x", "user_id": "alice"}'
    _, field, error = await told(client, "POST", "/v1/memories", content=sent, headers=headers)
    assert (field, error) == ("body", "body: is not declared as JSON: send Content-Type: application/json")


async def test_a_compressed_body_is_refused_by_its_header(client: AsyncClient) -> None:
    headers = JSON | {"Content-Encoding": "gzip"}
    answer = await told(client, "POST", "/v1/memories", content=gzip.compress(b"{}"), headers=headers)
    assert answer == (400, "Content-Encoding", "Content-Encoding: compressed bodies are not accepted.")


async def test_an_if_match_that_names_no_version_is_told_what_does(client: AsyncClient) -> None:
    stored = (await client.post("/v1/memories", json={"content": "Tea", "user_id": "alice"})).json()["results"][0]
    path, headers = f"/v1/memories/{stored['id']}", JSON | {"If-Match": 'W/"1"'}
    answer = await told(client, "PATCH", path, content=b'{"importance": 0.5}', headers=headers)
    assert answer == (412, "If-Match", 'If-Match: is not an ETag as GET returns it, such as "3".')
    headers = JSON | {"If-Match": "*"}
    answer = await told(client, "PUT", "/v1/users/nobody/profile", content=b"{}", headers=headers)
    assert answer == (412, "If-Match", "The profile has changed since, or does not exist; read it again.")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/memories", "DELETE, GET, POST"),
        ("GET", "/v1/recall", "POST"),
        ("POST", "/v1/memories/0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c", "DELETE, GET, PATCH, PUT"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(client: AsyncClient, method: str, path: str, allowed: str) -> None:
    answer = await client.request(method, path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)
    assert answer.json()["error"] == f"This path accepts {allowed}."


async def test_a_byte_order_mark_is_no_part_of_a_body(client: AsyncClient) -> None:
    body = '\ufeff{"content": "Prefers tea", "user_id": "i"}'.encode()
    assert (await client.post("/v1/memories", content=body, headers=JSON)).status_code == 201


async def test_an_unknown_address_is_told_where_the_known_ones_are(client: AsyncClient) -> None:
    assert await told(client, "GET", "/v1/memorys") == (404, None, "There is no such route; /docs lists them all.")


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("POST", "/v1/goals", {"user_id": "alice"}, "description: is missing"),
        ("POST", "/v1/api-keys", {}, "name: is missing"),
        ("POST", "/v1/memories/batch/get", {}, "ids: is missing"),
        ("POST", "/v1/memories", {"messages": [{"content": "hi"}]}, "messages[0].role: is missing"),
        ("POST", "/v1/goals/x/finish", {}, "There is no such route"),
        ("GET", "/v1/memories/by-tag?user_id=alice", None, "tags: is missing"),
        ("GET", "/v1/entities/path?user_id=alice", None, "source_id: is missing"),
        ("GET", "/v1/turns/search?user_id=alice", None, "query: is missing"),
    ],
)
async def test_a_missing_value_is_named(client: AsyncClient, method: str, path: str, body: object, told: str) -> None:
    answer = await client.request(method, path, json=body)
    assert answer.json()["detail"].startswith(told)


def _requests() -> list[type[RequestModel]]:
    for each in pkgutil.walk_packages(service.__path__, "service."):
        if ".routes" in each.name:
            importlib.import_module(each.name)
    waiting, found = [RequestModel], []
    while waiting:
        found += (below := waiting.pop().__subclasses__())
        waiting += below
    return found


def test_a_word_outside_a_closed_set_is_refused_with_all_words() -> None:
    met = 0
    for model in _requests():
        schema = model.model_json_schema()
        for name, shape in schema.get("properties", {}).items():
            text = json.dumps(shape)
            for place in re.findall(r'"#/\$defs/(\w+)"', text):
                shape = schema["$defs"][place] if "enum" in schema["$defs"][place] else shape
            words = next((each["enum"] for each in (shape, *shape.get("anyOf", ())) if "enum" in each), None)
            if words is None:
                continue
            met += 1
            with pytest.raises(ValidationError) as refused:
                model.model_validate({name: "nonsense"})
            errors = [each["msg"] for each in refused.value.errors() if each["loc"][0] == name]
            assert any(all(str(word) in each for word in words) for each in errors), f"{model.__name__}.{name} {errors}"
    assert met > 20
