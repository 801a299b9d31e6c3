"""Everything that is sent has a limit: said in the document, kept by every operation, and by a dry run, too."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

LONG = "k" * 2**20
ANSWERED_IN_S = 5.0
"""On a machine that does other things as well; alone it is a tenth of a second."""

ID = "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"
SCHEMA_NAMES = "#/components/schemas/"


@pytest.fixture
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


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
            yield from [] if forms or {"enum", "const"} & schema.keys() else [f"{where}: anything"]


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
