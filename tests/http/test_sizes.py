"""Everything that is sent has a limit: said in the document, kept by every operation, and by a dry run, too."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.domain import sizes
from service.domain.sizes import KEPT, JsonLimits, excess
from service.language import tags
from tests.app.test_openapi import operations
from tests.support.application import Tables
from tests.support.calls import store

LONG = "k" * 2**20
ANSWERED_IN_S = 5.0
"""On a machine that does other things as well; alone it is a tenth of a second."""

ID = "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"
SCHEMA_NAMES = "#/components/schemas/"


@pytest.fixture
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


# -- the document says each limit -------------------------------------------------------------------------------------


def unbounded(document: dict[str, Any], schema: Mapping[str, Any], where: str, inside: frozenset[str]) -> Iterator[str]:
    """Strings, lists and free objects without a limit."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(SCHEMA_NAMES)
        if name not in inside:
            yield from unbounded(document, document["components"]["schemas"][name], where, inside | {name})
        return
    forms = [each for each in schema.get("anyOf", ()) if {"type", "$ref", "anyOf", "enum"} & each.keys()]
    for form in forms:
        yield from unbounded(document, form, where, inside)
    match schema.get("type"):
        case "string":
            said = {"maxLength", "enum", "const"} & schema.keys() or schema.get("format") in ("uuid", "date-time")
            yield from [] if said else [f"{where}: a string"]
        case "array":
            yield from [] if "maxItems" in schema else [f"{where}: a list"]
            if schema["items"]:  # a list of whatever there is has limits as a whole
                yield from unbounded(document, schema["items"], f"{where}[]", inside)
        case "object":
            closed = schema.get("additionalProperties") is False
            yield from [] if closed or {"maxProperties", "propertyNames"} <= schema.keys() else [f"{where}: an object"]
            for name, shape in schema.get("properties", {}).items():
                yield from unbounded(document, shape, f"{where}.{name}", inside)
        case None:
            any_json = {"maxLength", "maxItems", "maxProperties"} <= schema.keys()
            yield from [] if forms or any_json or {"enum", "const"} & schema.keys() else [f"{where}: anything"]


def test_whatever_is_sent_has_a_limit_in_the_document(document: dict[str, Any]) -> None:
    found: list[str] = []
    for method, path, operation in operations(document):
        for each in operation.get("parameters", []):
            found += unbounded(document, each["schema"], f"{method} {path} {each['in']} {each['name']}", frozenset())
        if "requestBody" in operation:
            shape = operation["requestBody"]["content"]["application/json"]["schema"]
            found += unbounded(document, shape, f"{method} {path} body", frozenset())
    assert found == []


def test_what_has_no_limit_is_found(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    broken = {
        **document,
        "components": {"schemas": {**schemas, "Open": {"type": "object"}, "Word": {"type": "string"}}},
    }
    for shape, kind in (
        ({"$ref": f"{SCHEMA_NAMES}Open"}, "an object"),
        ({"anyOf": [{"type": "null"}, {"$ref": f"{SCHEMA_NAMES}Word"}]}, "a string"),
        ({"type": "array", "items": {"type": "integer"}}, "a list"),
        ({"type": "object", "additionalProperties": False, "properties": {"a": {"title": "A"}}}, "anything"),
    ):
        assert [each.split(": ")[1] for each in unbounded(broken, shape, "x", frozenset())] == [kind]


# -- every operation keeps them ---------------------------------------------------------------------------------------


def strings(document: dict[str, Any], schema: Mapping[str, Any], inside: frozenset[str]) -> Iterator[tuple[Any, ...]]:
    """The path to each place of a body that takes a string: names, 0 for an element, and * for a key of one's own."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(SCHEMA_NAMES)
        if name not in inside:
            yield from strings(document, document["components"]["schemas"][name], inside | {name})
        return
    for form in schema.get("anyOf", ()):
        yield from strings(document, form, inside)
    match schema.get("type"):
        case "string":
            yield ()
        case None if "maxLength" in schema:  # any JSON
            yield from ((), (0,), *([("*",), ("key",)] if schema["maxProperties"] else []))
        case "array":
            yield from ((0, *rest) for rest in strings(document, schema["items"] or {"type": "string"}, inside))
        case "object":
            if schema.get("additionalProperties") is not False:
                yield from (("*",), ("key",))
            for name, shape in schema.get("properties", {}).items():
                yield from ((name, *rest) for rest in strings(document, shape, inside))


def example(document: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    shape = operation["requestBody"]["content"]["application/json"]["schema"]
    body = document["components"]["schemas"][(shape.get("anyOf") or [shape])[0]["$ref"].removeprefix(SCHEMA_NAMES)]
    return dict((body.get("examples") or [{}])[0])


def with_long(body: Any, path: tuple[Any, ...]) -> Any:
    """The body with a megabyte at this place."""
    if not path:
        return LONG
    step, *rest = path
    if step == "*":
        return {LONG: 1}
    if step == 0:
        return [with_long(body[0] if isinstance(body, list) and body else None, tuple(rest))]
    return {**(body if isinstance(body, dict) else {}), step: with_long((body or {}).get(step), tuple(rest))}


def refused(status: int, answer: dict[str, Any]) -> bool:
    """Whether a request was, or the one item of a batch."""
    if status == 200 and "results" in answer:
        status, answer = answer["results"][0]["status"], answer["results"][0]["error"] or {}
    return status in (400, 413, 422) and bool(answer.get("field"))


async def test_a_megabyte_in_every_string_of_every_operation(client: AsyncClient, document: dict[str, Any]) -> None:
    """Refused at once, with a dry run and without, by an error that names a field and does not repeat the value."""
    slow: list[str] = []
    wrong: list[str] = []
    sent = 0
    for method, path, operation in operations(document):
        if "requestBody" not in operation:
            continue
        shape = operation["requestBody"]["content"]["application/json"]["schema"]
        body = example(document, operation)
        for place in sorted(set(strings(document, shape, frozenset())), key=str):
            full = with_long(body, place)
            for changed in (full, {**full, "dry_run": True}) if path == "/v1/memories" else (full,):
                where = f"{operation['operationId']} {place}"
                began = time.perf_counter()
                address = path.replace("{id}", ID).replace("{type}", "user").replace("{memory}", ID)
                address = (
                    address.replace("{conversation_id}", ID)
                    .replace("{user_id}", "alice")
                    .replace("{key:path}", "k")
                    .replace("{key}", "k")
                )
                answer = await client.request(method, address, json=changed)
                if time.perf_counter() - began > ANSWERED_IN_S:
                    slow.append(f"{where}: {time.perf_counter() - began:.1f} s")
                sent += 1
                if not refused(answer.status_code, answer.json()) or len(answer.text) > 5_000:
                    wrong.append(f"{where}: {answer.status_code} {answer.text[:300]}")
    assert sent > 100
    assert not wrong, "\n".join(wrong)
    assert not slow, "\n".join(slow)


async def test_long_values_in_an_address_and_in_headers(client: AsyncClient, document: dict[str, Any]) -> None:
    """Parameters with a limit; a long id is not found, and a header that is only looked at may be what it is."""
    long, seen = LONG[:60_000], set[str]()
    for method, path, operation in operations(document):
        wanted = {each["name"]: "x" for each in operation.get("parameters", []) if each.get("required")}
        address = re.sub(r"{\w+}", ID, path)
        body: dict[str, Any] = {"json": example(document, operation)} if "requestBody" in operation else {}
        for each in operation.get("parameters", []):
            shape = each["name"] + json.dumps(each["schema"], sort_keys=True)
            if each["in"] == "path" or "format" in shape or shape in seen:
                continue
            seen.add(shape)
            query = {**{k: v for k, v in wanted.items() if "{" + k + "}" not in path}, "user_id": "alice"}
            given: dict[str, Any] = {"params": query} if method == "get" else {}
            if each["in"] == "query":
                given["params"] = {**query, each["name"]: long}
            else:
                given["headers"] = {each["name"]: long}
            answer = await client.request(method, address, **given, **body)
            where = f"{operation['operationId']} {each['name']}: {answer.status_code} {answer.text[:200]}"
            assert answer.status_code in (400, 404, 422), where
            assert len(answer.text) < 5_000, where


async def test_a_dry_run_keeps_the_same_limits(client: AsyncClient) -> None:
    good = {"content": "Parks in bay 12", "user_id": "alice"}
    for changed, field in (
        ({"tags": [LONG]}, "tags[0]"),
        ({"tags": "a," * 101 + ",".join(map(str, range(101)))}, "tags"),
        ({"tags": ["fine", *("/".join(tag * 84) for tag in "abcdef")]}, "tags"),
        ({"metadata": {"k" * 256: 1}}, "metadata"),
        ({"metadata": {str(each): each for each in range(1_001)}}, "metadata"),
        ({"metadata": {"a": list(range(1_000))}}, "metadata"),
        ({"metadata": {"a": "x" * 65_536}}, "metadata"),
        ({"embedding": [0.1] * 2_000}, "embedding"),
        ({"timezone": "E" * 65}, "timezone"),
        ({"metadata": {LONG: 1}}, None),
        ({"x" * 1_000: 1}, None),
        ({LONG: 1}, None),
    ):
        answers = [
            await client.post("/v1/memories", json={**good, **changed, **dry}) for dry in ({}, {"dry_run": True})
        ]
        assert [each.status_code for each in answers] == [400, 400], answers[0].text
        assert answers[0].json()["detail"] == answers[1].json()["detail"]
        assert len(answers[0].text) < 4_000
        assert field is None or answers[0].json()["field"] == field, answers[0].text


async def test_what_is_over_its_limit_has_a_code_of_its_own(client: AsyncClient) -> None:
    good = {"content": "Parks in bay 12", "user_id": "alice"}
    for changed, code in (
        ({"content": "x" * 1_000_001}, "too_large"),
        ({"user_id": "x" * 256}, "too_large"),
        ({"user_id": "\u3042" * 200}, "too_large"),
        ({"tags": [str(each) for each in range(101)]}, "too_large"),
        ({"tags": ["x" * 256]}, "too_large"),
        ({"metadata": {"a": "x" * 65_536}}, "too_large"),
        ({"importance": 2}, "invalid_input"),
        ({"content": ""}, "invalid_input"),
        ({"tags": [1]}, "invalid_input"),
    ):
        answer = await client.post("/v1/memories", json={**good, **changed})
        assert (answer.status_code, answer.json()["code"]) == (400, code), answer.text


async def test_the_texts_of_a_request_count_together(client: AsyncClient) -> None:
    part = "\u3042 " * 7_000  # 28,000 bytes
    said = [{"role": "user", "content": part}, {"role": "user", "content": [{"type": "text", "text": part}]}]
    for path, body, field in (
        ("/v1/memories", {"messages": said, "user_id": "alice", "dry_run": True}, "messages"),
        ("/v1/memories/batch", {"items": [{"content": part, "user_id": "alice"}] * 2}, "items"),
        ("/v1/memories/batch", {"items": [{"messages": said, "user_id": "alice"}]}, "items"),
    ):
        answer = await client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "too_large", field)
        assert "40,000 bytes" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "text"),
    [("POST", "/v1/compat/automem/memory/batch", "content"), ("PUT", "/v1/compat/mem0/v1/batch/", "text")],
)
async def test_the_texts_of_other_clients_count_together(
    client: AsyncClient, method: str, path: str, text: str
) -> None:
    memories = [{"memory_id": str(UUID(int=1)), text: "a " * 13_000}] * 2
    answer = await client.request(method, path, json={"memories": memories})
    assert (answer.status_code, answer.json()["field"]) == (400, "memories"), answer.text
    assert "40,000 bytes" in answer.text


async def test_a_list_of_too_many_facts_is_refused_and_nothing_of_it_stored(client: AsyncClient) -> None:
    lines = "\n".join(f"- box {each} holds {each + 7} nails" for each in range(1_001))
    answer = await client.post("/v1/memories", json={"messages": lines, "user_id": "alice"})
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "too_large", "messages")
    assert "1,001 facts; the maximum per request is 1,000" in answer.json()["detail"]
    assert (await client.get("/v1/memories", params={"user_id": "alice"})).json()["results"] == []


async def test_a_message_that_is_read_for_facts_is_shorter_than_a_text(client: AsyncClient) -> None:
    body = {"messages": "a " * 26_000, "user_id": "alice"}
    answer = await client.post("/v1/memories", json=body)
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "too_large", "messages")
    assert (await client.post("/v1/memories", json={**body, "infer": False})).status_code == 201


async def test_what_each_message_keeps_counts_once_for_each(client: AsyncClient) -> None:
    said = [{"role": "user", "content": f"Note {each}"} for each in range(60)]
    for more, field in (
        ({"metadata": {"a": list(range(900))}}, "metadata"),
        ({"tags": [":".join(f"{tag}{level}" for level in range(9)) for tag in range(55)], "metadata": {}}, None),
        ({"tags": ["a"] * 100, "metadata": {"a": list(range(990))}}, "metadata"),
    ):
        body = {"messages": said, "user_id": "alice", "infer": False, "dry_run": True, **more}
        answer = await client.post("/v1/memories", json=body)
        assert answer.status_code == (400 if field else 200), answer.text
        assert answer.json().get("field") == field


async def test_many_values_of_a_filter_are_refused_at_once(client: AsyncClient) -> None:
    leaf = {"field": "k", "operator": "eq", "value": 1}
    for filters, field in (
        ({"field": "k", "operator": "in", "value": list(range(2_000))}, "filters.value"),
        ({"field": "k", "operator": "in", "value": list(range(10_000))}, "filters"),
        ({"OR": [{"AND": [leaf] * 100}] * 20}, "filters.OR[1].AND[0]"),
        ({"OR": [leaf] * 2_000}, "filters.OR"),
        ({"OR": [{"AND": [{"OR": [leaf] * 100}] * 100}] * 6}, "filters"),
    ):
        began = time.perf_counter()
        answer = await client.post("/v1/memories/search", json={"user_id": "alice", "query": "x", "filters": filters})
        assert (answer.status_code, answer.json()["field"]) == (400, field), answer.text
        assert time.perf_counter() - began < ANSWERED_IN_S


async def test_a_long_name_of_a_parameter_is_not_repeated(client: AsyncClient) -> None:
    answer = await client.get("/v1/memories", params={"user_id": "alice", "u" * 60_000: "x"})
    assert (answer.status_code, answer.json()["field"]) == (400, "query")
    assert len(answer.text) < 1_000


# -- free JSON --------------------------------------------------------------------------------------------------------


def nested(levels: int) -> Any:
    return {"k": nested(levels - 1)} if levels else 1


SMALL = JsonLimits(values=4, key_chars=3, depth=3, size=40)


@pytest.mark.parametrize(
    ("value", "over"),
    [
        ({}, None),
        ({"a": 1, "b": [2, 3]}, None),
        ({"a": 1, "b": [2, 3, 4]}, "4 values"),
        ([1, 2, 3, 4, 5], "4 values"),
        ({"abcd": 1}, "3 characters"),
        ({"a": {"abcd": 1}}, "3 characters"),
        (nested(3), None),
        (nested(4), "3 levels"),
        ([[[]]], None),
        ([[[[]]]], None),
        ([[[[1]]]], "3 levels"),
        ("x" * 38, None),
        ("x" * 39, "40 bytes"),
        ({"a": "ä" * 16}, None),
        ({"a": "ä" * 17}, "40 bytes"),
    ],
)
def test_what_free_json_exceeds(value: Any, over: str | None) -> None:
    found = excess(value, SMALL)
    assert (found is None) if over is None else over in str(found)


async def test_merging_does_not_grow_over_the_limits(client: AsyncClient) -> None:
    """A request that adds is refused; an update that the service makes of its own leaves out what is older."""
    many = [{f"{part}{each}": each for each in range(600)} for part in "ab"]
    made = await store(client, "Parks in bay 12", metadata=many[0], tags=[f"a{each}" for each in range(80)])
    conversation = (await client.post("/v1/conversations", json={"user_id": "alice", "metadata": many[0]})).json()["id"]
    entity = {"name": "Acme", "user_id": "alice"}
    await client.put("/v1/entities", json={**entity, "properties": many[0]})
    for method, path, body, field in (
        ("PATCH", f"/v1/memories/{made}", {"metadata": many[1]}, "metadata"),
        ("PATCH", f"/v1/conversations/{conversation}", {"metadata": many[1]}, "metadata"),
        ("PUT", "/v1/entities", {**entity, "properties": many[1]}, "properties"),
    ):
        answer = await client.request(method, path, json=body)
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "too_large", field), path
    body = {"id": made, "metadata": many[1], "tags": [f"b{each}" for each in range(80)]}
    updated = await client.post("/v1/memories", json={"content": "Parks in bay 13", "user_id": "alice", **body})
    assert updated.json()["results"][0]["event"] == "UPDATE", updated.text
    found = (await client.get(f"/v1/memories/{made}")).json()
    assert len(found["tags"]) == 100
    assert found["tags"][-1] == "b79"
    assert found["metadata"].keys() == many[1].keys()


async def test_an_entity_has_so_many_names(client: AsyncClient) -> None:
    for begin in range(0, sizes.MAX_ALIASES, 50):
        names = [f"Acme {each}" for each in range(begin, begin + 50)]
        answer = await client.put("/v1/entities", json={"name": "Acme", "user_id": "alice", "aliases": names})
        assert answer.status_code in (200, 201), answer.text
    answer = await client.put("/v1/entities", json={"name": "Acme", "user_id": "alice", "aliases": ["Acme Z"]})
    assert (answer.status_code, answer.json()["field"]) == (400, "aliases")


# -- filter keys ------------------------------------------------------------------------------------------------------

KEYS = "SELECT cardinality(memory_filter_keys($1, '{}', '{}', '{}', '{}', $2::jsonb, true))"


@pytest.mark.parametrize("written", ["{each}", '"2026-01-{day:02}"', '"word"'])
@pytest.mark.parametrize("as_keys", [True, False])
async def test_filter_keys_are_computed_in_linear_time(tables: Tables, written: str, as_keys: bool) -> None:
    """277 kB of numbers took 18 s, because each one had all keys before it copied."""
    values = [written.format(each=each, day=each % 28 + 1) for each in range(16_000)]
    row = "{" + ",".join(f'"k{each:06}":{value}' for each, value in enumerate(values)) + "}"
    began = time.perf_counter()
    (found,) = (await tables.fetch(KEYS, UUID(int=1), row if as_keys else f'{{"a":[{",".join(values)}]}}'))[0]
    assert time.perf_counter() - began < 4
    assert found >= 16_000 * (1 if "word" in written else 7)


async def test_the_largest_rows_are_stored_and_found(client: AsyncClient) -> None:
    most = [":".join(f"{number:02}{level}" + "x" * 47 for level in range(5))[:255] for number in range(100)]
    assert max(map(len, most)) == sizes.MAX_TAG - 1
    assert len(tags.prefixes(most)) == sizes.MAX_TAG_LEVELS
    numbers = {f"k{each:04}" + "k" * 40: each for each in range(KEPT.values)}
    wide = {"user_id": "u" * 255, "agent_id": "a" * 255, "run_id": "r" * 255, "channel": "\U0001f600" * 100}
    began = time.perf_counter()
    for text, more in (("Many tags", {"tags": most}), ("Many numbers", {"metadata": numbers})):
        answer = await client.post("/v1/memories", json={"content": text, **wide, "session_id": "s" * 255, **more})
        assert answer.status_code == 201, answer.text
    assert time.perf_counter() - began < 2 * ANSWERED_IN_S
    where = {"field": f"k0999{'k' * 40}", "operator": "gte", "value": 999}
    for narrow in ({"tags": [most[-1]]}, {"filters": where}):
        found = await client.post("/v1/memories/search", json={**wide, **narrow})
        assert len(found.json()["results"]) == 1, found.text
