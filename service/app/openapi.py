"""The OpenAPI document, with our error body instead of FastAPI's 422, and the page /docs."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, Response
from fastapi.routing import APIRoute, iter_route_contexts
from fastapi.staticfiles import StaticFiles

from service.access.values import OwnerKind
from service.cognition.values import GoalStatus
from service.domain import filters, job, kinds, memory, query, ranking, request, scope
from service.domain.access import Right
from service.feed.values import ChangeKind, DeliveryState
from service.http.deps import BEARER, HEADER, QUERY, RIGHTS
from service.http.errors import Problem, document
from service.http.middleware import is_open
from service.http.narrowing import ScopeMode
from service.queue.statements.operations import OperationState
from service.upkeep.values import Remedy, Section

DESCRIPTION = """
Store what an agent learns, find it again, and see why.

Every route except the health checks needs an API key: `Authorization: Bearer <key>`. The key determines the workspace.
Within it `user_id`, `agent_id` and `run_id` are hard filters, at least one of which is required on collection calls;
`channel` is a soft filter: reads include the active channel and `_global`.

Errors are `application/problem+json` and name the `field`. A trailing slash is ignored; encode a slash within a name as
`%2F`. Writes accept an `Idempotency-Key`. Times are ISO 8601 in UTC, intervals are half-open.
"""

COMMON = {
    "id": "Id of the object",
    "limit": "Maximum number of results",
    "cursor": "next_cursor of the previous page",
    "include_archived": "Include archived ones",
    "user_id": "Only of this user",
    "agent_id": "Only of this agent",
    "run_id": "Only of this run",
    "channel": "Only of this channel",
    "session_id": "Only of this session",
    "conversation_id": "Only of the conversation with this UUID",
    "memory_id": "Only about this memory",
    "memory": "UUID of a memory",
    "request_id": "Only of the request with this X-Request-ID",
    "api_key_id": "Only of this key",
    "source_id": "UUID of the source",
    "target_id": "UUID of the target",
    "max_depth": "Maximum number of edges",
    "task_type": "Only for this kind of task",
    "tool_name": "Only of this tool",
}
"""Default descriptions of common parameters."""


TAGS = {
    "Start here": "Store, search and recall: all that most agents need.",
    "memories": "Store, search, read, change, forget and restore memories.",
    "recall": "What an agent should know before it answers, as one bundle within a token budget.",
    "conversations": "Conversations and their turns, stored verbatim.",
    "entities": "People, places and things that memories mention, and their relations.",
    "relations": "Relations between memories.",
    "goals": "What a user or an agent wants to achieve.",
    "procedures": "Tool invocations, and strategies that worked.",
    "working memory": "Short-lived notes of a session.",
    "profiles": "Preferences and style of a user.",
    "decisions": "Decisions about memories, and undoing them.",
    "reviews": "Contradictions that wait for a person's decision.",
    "scopes": "Users, agents and runs that have memories.",
    "optimization": "What could be cleaned up, and applying what is confirmed.",
    "changes": "Every change of a memory, in order, for keeping a copy; and webhooks for them.",
    "operations": "The progress of asynchronous requests.",
    "jobs": "Background jobs.",
    "audit": "Who did what.",
    "API keys": "Keys with their rights and restrictions, and tokens.",
    "workspaces": "Workspaces and their settings.",
    "reference": "Configuration, statistics and vocabularies.",
    "health": "Health and metrics.",
}
"""Groups of operations, in the order of the page."""

FIRST_PATHS = ("/v1/memories", "/v1/memories/search", "/v1/recall")
"""Paths shown first on the page; their POST also has the first tag."""

CLOSED_SETS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "AuditOperation": ("An audited operation", get_args(request.Operation)),
    "AuditSubject": ("Kind of object of an audited operation", get_args(request.Subject)),
    "ChangeKind": ("Kind of change of a memory", get_args(ChangeKind)),
    "DeliveryState": ("State of a delivery", get_args(DeliveryState)),
    "FindingSection": ("Kind of finding", get_args(Section)),
    "FindingRemedy": ("What applying a finding does", get_args(Remedy)),
    "FilterOperator": ("How to compare a field with a value", get_args(filters.Operator)),
    "Fusion": ("How to combine signals into a score", get_args(ranking.Fusion)),
    "GoalStatus": ("State of a goal", get_args(GoalStatus)),
    "ImportanceBand": ("An importance as a word", get_args(kinds.ImportanceBand)),
    "JobName": ("Name of a background job", get_args(job.JobName)),
    "JobState": ("State of a job", get_args(job.JobState)),
    "LifecycleState": ("State of a memory", get_args(memory.LifecycleState)),
    "MemoryState": ("Whether to list existing or deleted memories", get_args(memory.MemoryState)),
    "OperationState": ("State of an operation", get_args(OperationState)),
    "OwnerKind": ("Kind of owner", get_args(OwnerKind)),
    "Right": ("A right of a key", tuple(sorted(Right))),
    "ScopeMatch": ("Whether memories must have all of several ids, or any", get_args(scope.ScopeMatch)),
    "ScopeMode": ("Whether memories may have ids that are not given", get_args(ScopeMode)),
    "TagMatch": ("Whether a tag also matches those below it", get_args(query.TagMatch)),
    "TagMode": ("Whether any of several tags is enough or all are required", get_args(query.TagMode)),
    "Validity": ("How to treat memories that are not valid now", get_args(query.Validity)),
    "VectorPath": ("How vectors were searched", get_args(query.VectorPath)),
}
"""Enumerations that are used in several places, defined once so that clients get one type for each."""


def install(app: FastAPI, *, key_in_query: bool) -> None:
    """Installs the OpenAPI document. `key_in_query`: whether ?api_key= is accepted and documented."""
    original = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _adapt(original())
            _tell_rights(app)
            _tell_keys(app.openapi_schema, key_in_query=key_in_query)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _tell_rights(app: FastAPI) -> None:
    """Adds the required rights to the description of each operation, and the error where they are missing."""
    needed: dict[str | None, list[str]] = {}
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if isinstance(route, APIRoute) and route.include_in_schema:
            asked = (RIGHTS.get(dependant.call, ()) for dependant in route.dependant.dependencies if dependant.call)
            needed[route.operation_id or route.name] = [f"`{right}`" for rights in asked for right in rights]
    for operations in (app.openapi_schema or {})["paths"].values():
        for operation in operations.values():
            if rights := needed.get(operation["operationId"]):
                operation["description"] = f"{operation['description']}\n\nNeeds {' and '.join(rights)}."
                operation["responses"]["403"] = document(403)[403]


def _adapt(schema: dict[str, Any]) -> dict[str, Any]:
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas["ErrorCode"] = schemas["Problem"]["properties"]["code"] | {"title": "ErrorCode"}
    schemas["Problem"]["properties"]["code"] = {"$ref": "#/components/schemas/ErrorCode"}
    schema["servers"] = [{"url": "/", "description": "The service that serves this document"}]
    schema["tags"] = [{"name": name, "description": param} for name, param in TAGS.items()]
    for path in FIRST_PATHS:
        schema["paths"][path]["post"]["tags"].append(next(iter(TAGS)))
    schema["paths"] = {path: schema["paths"][path] for path in FIRST_PATHS} | schema["paths"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            default = operation["responses"].get("422", {})
            if "HTTPValidationError" in str(default):
                del operation["responses"]["422"]
            for param in operation.get("parameters", []):
                if param["in"] == "path" and param["name"] in PATH_IDS and "maxLength" not in param["schema"]:
                    param["schema"]["format"] = "uuid"
                if param["name"] in COMMON:
                    param.setdefault("description", COMMON[param["name"]])
            _add_implied_errors(operation, needs_key=not is_open(path))
    bodies = [
        operation.get("requestBody") for operations in schema["paths"].values() for operation in operations.values()
    ]
    for name in _find_names(schemas, bodies):
        _say_defaults(schemas[name])
    return _sharing_sets(schema)


def _find_names(schemas: dict[str, Any], part: Any) -> set[str]:
    """Names of the schemas that this part refers to."""
    waiting, known = set(SCHEMA_NAME.findall(json.dumps(part))), set[str]()
    while waiting:
        known.add(name := waiting.pop())
        waiting |= set(SCHEMA_NAME.findall(json.dumps(schemas[name]))) - known
    return known


SCHEMA_NAME = re.compile(r'"#/components/schemas/(\w+)"')


def _say_defaults(schema: dict[str, Any]) -> None:
    """Moves defaults of a request into descriptions: generators would always send a field with a default."""
    for shape in schema.get("properties", {}).values():
        value = shape.pop("default", None)
        if value not in (None, [], {}) and "default" not in shape.get("description", ""):
            shape["description"] = f"{shape.get('description', '')}; default {json.dumps(value)}".lstrip("; ")


def _sharing_sets(document: dict[str, Any]) -> dict[str, Any]:
    """The document with references instead of repeated enumerations."""
    own = {
        name: {"type": "string", "enum": list(words), "title": name, "description": description}
        for name, (description, words) in CLOSED_SETS.items()
    }
    own |= {name: schema for name, schema in document["components"]["schemas"].items() if "enum" in schema}
    names = {tuple(schema["enum"]): name for name, schema in own.items()}

    def referring(part: Any) -> Any:
        if isinstance(part, list):
            return [referring(each) for each in part]
        if not isinstance(part, dict):
            return part
        words = part.get("enum")
        name = names.get(tuple(words)) if isinstance(words, list) else None
        kept = part if name is None else {key: part[key] for key in part if key not in ("enum", "type", "title")}
        refers = {} if name is None else {"$ref": f"#/components/schemas/{name}"}
        return refers | {key: referring(each) for key, each in kept.items()}

    made: dict[str, Any] = referring(document)
    made["components"]["schemas"] |= own
    return made


def _add_implied_errors(operation: dict[str, Any], *, needs_key: bool) -> None:
    """Adds the errors that follow from the parts of the request: invalid, an unknown id, a body too large or too slow,
    a reused Idempotency-Key, an outdated version, a limit reached."""
    answers, parameters = operation["responses"], operation.get("parameters", [])
    sent = {each["name"].lower() for each in parameters}
    implied = {
        400: needs_key,  # an unknown parameter
        401: needs_key,
        404: any(each["in"] == "path" and each["schema"].get("format") == "uuid" for each in parameters),
        408: "requestBody" in operation,
        409: "idempotency-key" in sent,
        412: "if-match" in sent,
        413: "requestBody" in operation,
        422: needs_key,  # a secret in X-Session-Id, an id or another name
        429: needs_key,
        503: needs_key,  # the API key is looked up in the database
    }
    for status, answer in document(*(status for status, comes in implied.items() if comes)).items():
        answers.setdefault(str(status), answer)


def _tell_keys(document: dict[str, Any], *, key_in_query: bool) -> None:
    """Adds the security schemes to operations that need a key, which the middleware reads instead of a dependency."""
    schemes = {each.scheme_name: each.model for each in (BEARER, HEADER, *([QUERY] if key_in_query else []))}
    document["components"]["securitySchemes"] = {
        name: model.model_dump(mode="json", by_alias=True, exclude_none=True) for name, model in schemes.items()
    }
    for operations in document["paths"].values():
        for operation in operations.values():
            needs_key = "401" in operation["responses"]
            operation["security"] = [{name: []} for name in schemes] if needs_key else []


PATH_IDS = frozenset({"id", "memory"})
"""Parameters that are UUIDs. Routes accept any text and return 404 for anything else."""

DOCUMENT = "/openapi.json"
ASSETS = "/docs/assets"


def serve_page(app: FastAPI) -> None:
    """Adds the document, and /docs from installed files only. Their package is located, not imported: it has an
    application class of its own. The document takes two seconds to make, so a thread makes it, for the first who asks;
    what those without a key can ask for must cost nothing."""
    app.openapi_url = DOCUMENT
    made: asyncio.Task[bytes] | None = None

    @app.get(DOCUMENT, include_in_schema=False)
    async def document() -> Response:
        nonlocal made
        if made is None:
            made = asyncio.create_task(asyncio.to_thread(lambda: json.dumps(app.openapi()).encode()))
        return Response(await asyncio.shield(made), media_type="application/json")

    app.mount(ASSETS, StaticFiles(directory=_assets()), name="docs")

    page = bytes(
        get_swagger_ui_html(
            openapi_url=DOCUMENT,
            title=app.title,
            swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{ASSETS}/favicon.png",
            swagger_ui_parameters={"validatorUrl": None},  # its badge would send our address to a server of theirs
        ).body
    ).decode()
    policy = _content_policy(page)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})


def _content_policy(page: str) -> str:
    """What the page may load: files of this service, and the one script in the page itself. Swagger sets styles."""
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _assets() -> Path:
    package = find_spec("fastapi_offline")
    assert package is not None, "fastapi-offline is pinned in requirements/"
    assert package.origin is not None, "it is an ordinary package"
    return Path(package.origin).parent / "static"
