"""A client can be generated from the OpenAPI document, and the document is true."""

from __future__ import annotations

import copy
import importlib
import json
import os
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient
from pydantic import BaseModel, TypeAdapter

import service


@pytest.fixture
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


STABLE = {
    "add_working_turn",
    "clear_working_context",
    "complete_goal",
    "create_api_key",
    "create_conversation",
    "create_entity_relation",
    "create_goal",
    "create_relation",
    "create_workspace",
    "delete_entity",
    "delete_goal",
    "delete_relation",
    "delete_strategy",
    "find_entity_path",
    "find_strategies",
    "get_active_goal",
    "get_conversation",
    "get_conversation_context",
    "get_entity",
    "get_entity_graph",
    "get_goal",
    "get_memory",
    "get_memory_history",
    "get_operation",
    "get_related_memories",
    "get_strategy",
    "get_timeline",
    "get_tool_stats",
    "get_user_profile",
    "get_working_context",
    "get_workspace",
    "health",
    "list_api_keys",
    "learn_strategy",
    "list_channels",
    "list_conversations",
    "list_entities",
    "list_entity_relations",
    "list_goals",
    "list_jobs",
    "list_memories",
    "list_memories_by_tag",
    "list_recent_turns",
    "list_relations",
    "livez",
    "merge_entities",
    "metrics",
    "push_thought",
    "put_user_profile",
    "readyz",
    "recall",
    "record_tool_invocation",
    "reinforce_strategy",
    "revoke_api_key",
    "search_entities",
    "search_memories",
    "search_memories_simple",
    "search_turns",
    "set_active_goal",
    "set_working_item",
    "store_memories",
    "store_memory",
    "store_turn",
    "update_goal",
    "update_workspace",
    "upsert_entity",
    "whoami",
}
"""Names of SDK methods: a change breaks clients."""


def test_operation_ids_are_stable_and_unique(document: dict[str, Any]) -> None:
    ids = Counter(operation["operationId"] for _, _, operation in operations(document))
    assert [name for name, count in ids.items() if count > 1] == []
    assert all(re.fullmatch(r"[a-z][a-z0-9_]+", name) for name in ids)
    assert STABLE - ids.keys() == set()


def test_every_operation_is_described(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        where = f"{method} {path}"
        assert operation.get("summary"), where
        assert operation.get("tags"), where
        good = [status for status in operation["responses"] if status.startswith("2")]
        assert good, where
        if path.startswith("/v1") and "204" not in good:
            for status in good:
                content = operation["responses"][status]["content"]["application/json"]["schema"]
                assert "$ref" in json.dumps(content), f"{where} {status}"


PROBES = {"health", "readyz", "get_health_details"}
"""Their 503 is what they were asked, not an error."""


def test_errors_have_one_model(document: dict[str, Any]) -> None:
    assert "HTTPValidationError" not in json.dumps(document)
    assert "Problem" in document["components"]["schemas"]
    for method, path, operation in operations(document):
        for status, answer in operation["responses"].items():
            if status.startswith("4") or (status.startswith("5") and operation["operationId"] not in PROBES):
                assert list(answer["content"]) == ["application/problem+json"], f"{method} {path} {status}"
        if path.startswith("/v1") and operation["operationId"] != "health":
            assert "401" in operation["responses"], f"{method} {path}"


def test_422_is_wherever_a_key_is_needed(document: dict[str, Any]) -> None:
    """An id, another name or X-Session-Id may hold a secret on every route that knows the caller."""
    for method, path, operation in operations(document):
        assert ("422" in operation["responses"]) == ("401" in operation["responses"]), f"{method} {path}"


def test_what_is_sent_brings_its_errors(document: dict[str, Any]) -> None:
    """A body can be too large, an Idempotency-Key another request's, a version old: said wherever it can be."""
    by_id = {operation["operationId"]: set(operation["responses"]) for _, _, operation in operations(document)}
    for name, statuses in (
        ("delete_goal", {"400", "404", "409", "412", "503"}),
        ("delete_memories", {"400", "409", "503"}),
        ("list_entities", {"400", "413"}),
        ("get_memory", {"400", "404"}),
        ("store_memories", {"409", "413", "503"}),
        ("recall", {"400", "413", "422", "429", "503"}),
        ("search_turns", {"400", "422", "429"}),
    ):
        assert statuses <= by_id[name], name
    for method, path, operation in operations(document):
        names = {each["name"] for each in operation.get("parameters", [])}
        if path.startswith("/v1/working"):
            assert "Idempotency-Key" not in names, "it is refused there"
        elif "Idempotency-Key" in names:
            assert "409" in operation["responses"], f"{method} {path}"


def test_schemas_have_names_of_their_own(document: dict[str, Any]) -> None:
    """Two models of one name would bear their modules in it, and so would the classes of a generated client."""
    assert [name for name in document["components"]["schemas"] if "__" in name] == []


def test_requests_have_one_form(document: dict[str, Any]) -> None:
    """Code generators lose a whole body over a choice between forms of it, so words say what excludes what."""
    schemas = document["components"]["schemas"]
    bodies = named(schemas, [operation.get("requestBody") for _, _, operation in operations(document)])
    assert {"StoreRequest", "SearchRequest", "RecallRequest", "FilterInput", "MessageInput"} <= bodies
    for name in bodies:
        assert not {"anyOf", "oneOf", "allOf", "not", "if"} & schemas[name].keys(), name
        for field, shape in schemas[name].get("properties", {}).items():
            forms = [each for each in shape.get("anyOf", ()) if each != {"type": "null"}]
            assert len(forms) < 2, f"{name}.{field}"
    for name in ("StoreRequest", "SearchRequest"):
        assert schemas[name]["additionalProperties"] is False


def test_a_closed_set_stands_once(document: dict[str, Any]) -> None:
    found = Counter(json.dumps(each) for each in sets_in(document) if len(each) > 2)
    assert [words for words, count in found.items() if count > 1] == []
    assert "invalid_input" in document["components"]["schemas"]["ErrorCode"]["enum"]


def sets_in(part: Any) -> Iterator[list[str]]:
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from sets_in(each)
    if isinstance(part, dict) and isinstance(part.get("enum"), list):
        yield part["enum"]


def test_every_group_is_described(document: dict[str, Any]) -> None:
    used = {tag for _, _, operation in operations(document) for tag in operation["tags"]}
    assert used == {each["name"] for each in document["tags"] if each["description"]}
    first = document["tags"][0]["name"]
    starts = [path for _, path, operation in operations(document) if first in operation["tags"]]
    assert starts == ["/v1/memories", "/v1/memories/search", "/v1/recall"]
    assert all(operation["tags"][0] != first for _, _, operation in operations(document)), "generators read the first"
    assert document["info"]["license"]["identifier"] == "Apache-2.0"
    assert document["servers"]


FROZEN = Path(__file__).parents[2] / "docs" / "openapi.json"


def test_the_document_in_the_repository_is_this_one(document: dict[str, Any]) -> None:
    """Whoever changes the contract sees it in the commit: `make openapi` writes it."""
    if os.environ.get("WRITE_OPENAPI"):
        FROZEN.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    assert json.loads(FROZEN.read_text()) == document


def blank(name: str, words: str | None) -> bool:
    """Does this say nothing, or no more than the name does?"""
    return re.sub(r"\W+|_", " ", words or "").strip().lower() in ("", name.lower().replace("_", " "))


def undescribed(document: dict[str, Any]) -> Iterator[str]:
    """Every operation, parameter, schema and field that a reader learns nothing of. A field that is another schema is
    told by that one."""
    schemas = document["components"]["schemas"]
    for method, path, operation in operations(document):
        for said in ("summary", "description"):
            if blank(operation["operationId"], operation.get(said)):
                yield f"{method} {path}: {said}"
        for each in operation.get("parameters", []):
            if blank(each["name"], each.get("description")):
                yield f"{method} {path}: {each['name']}"
    for name, schema in schemas.items():
        if blank(name, schema.get("description")) and name != "JsonValue":  # pydantic's own: whatever JSON there is
            yield name
        for field, shape in schema.get("properties", {}).items():
            told = schemas[shape["$ref"].rsplit("/", 1)[1]] if "$ref" in shape else {}
            if blank(field, shape.get("description")) and blank(field, told.get("description")):
                yield f"{name}.{field}"


def test_everything_is_described(document: dict[str, Any]) -> None:
    assert list(undescribed(document)) == []


def test_what_is_not_described_is_found(document: dict[str, Any]) -> None:
    broken = copy.deepcopy(document)
    goals = broken["paths"]["/v1/goals"]["get"]
    del goals["description"]
    goals["parameters"][0]["description"] = goals["parameters"][0]["name"].replace("_", " ").title()
    fields = broken["components"]["schemas"]["GoalResponse"]
    del fields["description"], fields["properties"]["overdue"]["description"]
    expected = ["get /v1/goals: description", f"get /v1/goals: {goals['parameters'][0]['name']}"]
    assert list(undescribed(broken)) == [*expected, "GoalResponse", "GoalResponse.overdue"]


def named(schemas: dict[str, Any], first: Any) -> set[str]:
    """The schemas that this one is made of, by name."""
    waiting, known = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(first))), set[str]()
    while waiting:
        name = waiting.pop()
        known.add(name)
        waiting |= set(re.findall(r"#/components/schemas/(\w+)", json.dumps(schemas[name]))) - known
    return known


def test_an_answer_says_what_null_means(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    answers = named(schemas, [operation["responses"] for _, _, operation in operations(document)])
    assert {"MemoryResponse", "GoalResponse", "AuditItem", "Problem"} <= answers
    silent = [
        f"{name}.{field}"
        for name in sorted(answers)
        for field, shape in schemas[name].get("properties", {}).items()
        if {"type": "null"} in shape.get("anyOf", []) and "null" not in shape["description"]
    ]
    assert silent == []


def test_no_number_of_a_requirement_is_told(document: dict[str, Any]) -> None:
    """Docstrings are the document's words; whoever reads them there has no list to look such a number up in."""
    assert re.findall(r"[^\"]*\((?:R\d+\.\d+|[A-D]\d+)[^\"]*", json.dumps(document)) == []


def test_numbers_that_rank_are_bounded(document: dict[str, Any]) -> None:
    """Between what numbers each lies that a search is sent."""
    for name in ("SearchRequest", "Weights", "Factors"):
        for field, shape in document["components"]["schemas"][name]["properties"].items():
            for form in shape.get("anyOf", [shape]):
                bounded = {"minimum", "maximum"} <= form.keys()
                assert bounded or form.get("type") not in ("number", "integer"), f"{name}.{field}"


def refused(document: dict[str, Any], filters: Any) -> bool:
    schema = {"$ref": "#/components/schemas/FilterInput", "components": document["components"]}
    return not jsonschema_rs.is_valid(schema, filters)


async def test_filters_that_are_taken_are_in_the_document(document: dict[str, Any], client: AsyncClient) -> None:
    leaf = {"field": "k", "operator": "eq", "value": 1}
    nothing = dict.fromkeys(("field", "operator", "AND", "OR", "NOT"))
    for taken in (
        leaf,
        {"field": "k", "operator": "in", "value": [1, "a", True]},
        {"field": "k", "operator": "eq", "value": None},
        {"AND": [leaf, {"NOT": leaf}]},
        {**nothing, **leaf},
        {**nothing, "OR": [leaf]},
    ):
        assert not refused(document, taken), taken
        answer = await client.post("/v1/memories/search", json={"user_id": "alice", "query": "x", "filters": taken})
        assert answer.status_code == 200, taken


WAYS: tuple[dict[str, Any], ...] = (
    {"query": "tea", "explain": True},
    {"query": "tea", "connected": True, "time_query": "last year", "tuning": {"rerank": True}},
    {"query": "tea", "explain_id": "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"},
    {"query": "tea", "tuning": {"fusion": "rrf", "diversity": 0.5, "techniques": {"hyde": True, "self_query": True}}},
    {"tags": ["drink"], "explain": True},
    {"query": "tea", "limit": 0},
    {"query": "tea", "filters": {"field": "k"}},
    {"query": "the password is"},
)


async def test_answers_are_what_the_document_says(client: AsyncClient, document: dict[str, Any]) -> None:
    body = {"content": "Drinks tea since May 2023", "user_id": "alice", "tags": ["drink"], "metadata": {"k": [1, None]}}
    found = (await client.post("/v1/memories", json=body)).json()["results"][0]["id"]
    responses = document["paths"]["/v1/memories/search"]["post"]["responses"]
    for way in (*WAYS, {"query": "tea", "explain_id": found, "explain": True}):
        answer = await client.post("/v1/memories/search", json={"user_id": "alice", **way})
        (content,) = responses[str(answer.status_code)]["content"].values()
        jsonschema_rs.validate({**content["schema"], "components": document["components"]}, answer.json())


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    for name in set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document))):
        assert name in document["components"]["schemas"], name


def test_keys_are_given_in_a_header(document: dict[str, Any]) -> None:
    """The URL is none of the places unless the service is set so, and then it is told."""
    kinds = {(each["type"], each.get("in")) for each in document["components"]["securitySchemes"].values()}
    assert kinds == {("http", None), ("apiKey", "header")}
    named = {
        name for _, _, operation in operations(document) for each in operation.get("security", ()) for name in each
    }
    assert named == set(document["components"]["securitySchemes"])


def models() -> list[type[BaseModel]]:
    """Every body and reply of ours."""
    found = set[type[BaseModel]]()
    for part in pkgutil.walk_packages(service.__path__, "service."):
        if not (".routes" in part.name or part.name.startswith("service.http") or part.name.endswith("_models")):
            continue
        for each in vars(importlib.import_module(part.name)).values():
            if isinstance(each, type) and issubclass(each, BaseModel) and each.__module__ == part.name:
                found.add(each)
    return sorted(found, key=lambda model: (model.__module__, model.__name__))


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_examples_are_valid(model: type[BaseModel]) -> None:
    extra = model.model_config.get("json_schema_extra")
    examples: Any = extra.get("examples", []) if isinstance(extra, dict) else []
    for example in examples:
        model.model_validate_json(json.dumps(example))
    for field in model.model_fields.values():
        shape = TypeAdapter[Any](field.annotation or Any)
        for example in field.examples or []:
            shape.validate_json(json.dumps(example))


async def test_the_examples_work(client: AsyncClient, document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert (await client.post("/v1/memories", json=schemas["StoreRequest"]["examples"][0])).status_code == 201
    found = await client.post("/v1/memories/search", json=schemas["SearchRequest"]["examples"][0])
    assert found.status_code == 200
    assert len(found.json()["results"]) == 1


async def test_the_document_and_its_page_are_served(anonymous: AsyncClient) -> None:
    served = await anonymous.get("/openapi.json")
    assert served.json()["info"]["title"] == "Loxodon"
    assert (await anonymous.get("/docs")).status_code == 200


def sent(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every operation that takes a body, with the schema of it."""
    for method, path, operation in operations(document):
        if "requestBody" in operation:
            yield f"{method} {path}", operation["requestBody"]["content"]["application/json"]["schema"]


def test_every_body_has_an_example_that_its_schema_takes(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for where, shape in sent(document):
        body = schemas[(shape.get("anyOf") or [shape])[0]["$ref"].rsplit("/", 1)[1]]
        examples = body.get("examples", [{}] if not body.get("required") else [])
        assert examples, where
        for example in examples:
            checked = {**body, "components": document["components"]}
            assert jsonschema_rs.is_valid(checked, example), f"{where}: {example}"
