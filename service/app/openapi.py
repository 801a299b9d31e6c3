"""The OpenAPI document, with our error body instead of the 422 that FastAPI adds to every route, and the page /docs."""

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

from service.domain import audit, feed, filters, job, kinds, memory, optimization, query, ranking, scope, webhook
from service.domain.access import Right
from service.domain.goal import GoalStatus
from service.domain.usage import OwnerKind
from service.http import error_page
from service.http.deps import BEARER, HEADER, QUERY, RIGHTS
from service.http.errors import Problem, documented
from service.http.narrowing import ScopeMode
from service.queue.operations import OperationState

DESCRIPTION = """
Store what an agent learns, find it again, and see why.

Every route but the health checks needs an API key: `Authorization: Bearer <key>`. The key decides the workspace;
inside it `user_id`, `agent_id` and `run_id` are hard filters, at least one is needed on collection calls, and
`channel` is a soft one: reads look at the active channel and at `_global`.

Errors are `application/problem+json` and name the `field`. A trailing slash makes no difference; in a name, a slash is
`%2F`. Writes take an `Idempotency-Key`. Times are ISO 8601 in UTC, intervals are half-open.
"""

COMMON = {
    "id": "Its id",
    "limit": "At most this many",
    "cursor": "next_cursor of the previous page",
    "include_archived": "Archived ones, too",
    "user_id": "Of this user",
    "agent_id": "Of this agent",
    "run_id": "Of this run",
    "channel": "Of this channel",
    "session_id": "Of this session",
    "conversation_id": "Of this conversation, by its UUID",
    "memory_id": "Of this memory",
    "memory": "UUID of a memory",
    "request_id": "Of this request, as in X-Request-ID",
    "api_key_id": "Of this key",
    "source_id": "UUID of the one it begins at",
    "target_id": "UUID of the one it leads to",
    "max_depth": "At most so many steps",
    "task_type": "Of this kind of task",
    "tool_name": "Of this tool",
}
"""Descriptions of parameters that mean the same on every route."""


TAGS = {
    "Start here": "Store, search, recall: all that most agents need.",
    "memories": "Store, search, read, change, forget and restore memories.",
    "recall": "All that an agent should know before it answers, as one bundle within a budget of tokens.",
    "conversations": "Conversations and their turns, kept as they were said.",
    "entities": "People, places and things that memories name, and how they are related.",
    "relations": "Edges between memories.",
    "goals": "What a user or an agent wants to achieve.",
    "procedures": "Uses of tools, and strategies that worked.",
    "working memory": "Short-lived notes of a session.",
    "profiles": "What is known of a user as a person.",
    "decisions": "Rulings about memories, and taking them back.",
    "reviews": "Changes that wait for a person.",
    "scopes": "Users, agents and runs that have memories.",
    "optimization": "What could be cleaned up, and doing what is confirmed.",
    "changes": "Every change of a memory in order, for whoever keeps a copy; webhooks that are told of them.",
    "operations": "The progress of what was accepted and is done later.",
    "jobs": "Work in the background.",
    "audit": "Who did what.",
    "API keys": "Keys, their rights and walls, and tokens.",
    "workspaces": "Workspaces and their settings.",
    "reference": "What this service is and how it is set.",
    "health": "Whether the service lives and serves.",
}
"""Groups of operations, in the order in which a newcomer meets them."""

FIRST_PATHS = ("/v1/memories", "/v1/memories/search", "/v1/recall")
"""The paths that the page shows first; their POST stands under the first tag, too."""

CLOSED_SETS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "AuditOperation": ("What was done", get_args(audit.Operation)),
    "AuditSubject": ("To what kind of thing it was done", get_args(audit.Subject)),
    "ChangeKind": ("What happened to a memory", get_args(feed.ChangeKind)),
    "DeliveryState": ("Where a delivery stands", get_args(webhook.DeliveryState)),
    "FindingSection": ("What kind of finding it is", get_args(optimization.Section)),
    "FindingRemedy": ("What would be done about it", get_args(optimization.Remedy)),
    "FilterOperator": ("How a field and a value are compared", get_args(filters.Operator)),
    "Fusion": ("How signals become one score", get_args(ranking.Fusion)),
    "GoalStatus": ("Where a goal stands", tuple(GoalStatus)),
    "ImportanceBand": ("What an importance of 0..1 amounts to", get_args(kinds.ImportanceBand)),
    "JobName": ("A kind of work in the background", get_args(job.JobName)),
    "JobState": ("Where a job stands", get_args(job.JobState)),
    "LifecycleState": ("Where a memory stands", get_args(memory.LifecycleState)),
    "MemoryState": ("Whether it is still there", get_args(memory.MemoryState)),
    "OperationState": ("Where an operation stands", get_args(OperationState)),
    "OwnerKind": ("Whose memories they are", get_args(OwnerKind)),
    "Right": ("What a key may do", tuple(sorted(Right))),
    "ScopeMatch": ("Whether all of several ids are meant, or any", get_args(scope.ScopeMatch)),
    "ScopeMode": ("Whether ids that are left out count", get_args(ScopeMode)),
    "TagMatch": ("Whether a tag also finds those below it", get_args(query.TagMatch)),
    "TagMode": ("Whether any of several tags is enough", get_args(query.TagMode)),
    "Validity": ("What is done with memories that do not hold now", get_args(query.Validity)),
    "VectorPath": ("How vectors were searched", get_args(query.VectorPath)),
}
"""Words that several places take, each set once in the document: clients get one type of it."""


def install(app: FastAPI, *, key_in_query: bool) -> None:
    """`key_in_query`: whether ?api_key= is taken, and so told."""
    original = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _adapted(original())
            _tell_rights(app)
            _tell_keys(app.openapi_schema, key_in_query=key_in_query)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _tell_rights(app: FastAPI) -> None:
    """Adds to the description of each operation which rights its key needs."""
    needed: dict[str | None, list[str]] = {}
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if isinstance(route, APIRoute) and route.include_in_schema:
            asked = (RIGHTS.get(each.call, ()) for each in route.dependant.dependencies if each.call)
            needed[route.operation_id or route.name] = [f"`{right}`" for rights in asked for right in rights]
    for operations in (app.openapi_schema or {})["paths"].values():
        for operation in operations.values():
            if rights := needed.get(operation["operationId"]):
                operation["description"] = f"{operation['description']}\n\nNeeds {' and '.join(rights)}."


def _adapted(found: dict[str, Any]) -> dict[str, Any]:
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas["ErrorCode"] = schemas["Problem"]["properties"]["code"] | {"title": "ErrorCode"}
    schemas["Problem"]["properties"]["code"] = {"$ref": "#/components/schemas/ErrorCode"}
    found["servers"] = [{"url": "/", "description": "The service that this document comes from"}]
    found["tags"] = [{"name": name, "description": each} for name, each in TAGS.items()]
    for path in FIRST_PATHS:
        found["paths"][path]["post"]["tags"].append(next(iter(TAGS)))
    found["paths"] = {path: found["paths"][path] for path in FIRST_PATHS} | found["paths"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for operations in found["paths"].values():
        for operation in operations.values():
            default = operation["responses"].get("422", {})
            if "HTTPValidationError" in str(default):
                del operation["responses"]["422"]
            _add_implied_errors(operation)
            for each in operation.get("parameters", []):
                if each["in"] == "path" and each["name"] in PATH_IDS and "maxLength" not in each["schema"]:
                    each["schema"]["format"] = "uuid"
                if each["name"] in COMMON:
                    each.setdefault("description", COMMON[each["name"]])
    bodies = [
        operation.get("requestBody") for operations in found["paths"].values() for operation in operations.values()
    ]
    for name in _named(schemas, bodies):
        _say_defaults(schemas[name])
    return _sharing_sets(found)


def _named(schemas: dict[str, Any], part: Any) -> set[str]:
    """The schemas that this part is made of, by name."""
    waiting, known = set(SCHEMA_NAME.findall(json.dumps(part))), set[str]()
    while waiting:
        known.add(name := waiting.pop())
        waiting |= set(SCHEMA_NAME.findall(json.dumps(schemas[name]))) - known
    return known


SCHEMA_NAME = re.compile(r'"#/components/schemas/(\w+)"')


def _say_defaults(schema: dict[str, Any]) -> None:
    """Tells defaults of a request in words: generators take a field with a default for one that is always sent."""
    for shape in schema.get("properties", {}).values():
        value = shape.pop("default", None)
        if value not in (None, [], {}) and "default" not in shape.get("description", ""):
            shape["description"] = f"{shape.get('description', '')}; default {json.dumps(value)}".lstrip("; ")


def _sharing_sets(document: dict[str, Any]) -> dict[str, Any]:
    """The document with a reference wherever a closed set is spelt out."""
    own = {
        name: {"type": "string", "enum": list(words), "title": name, "description": told}
        for name, (told, words) in CLOSED_SETS.items()
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


def _add_implied_errors(operation: dict[str, Any]) -> None:
    """Adds the errors that follow from the parts of the request: any part can be invalid, a body too large or too
    slow, an Idempotency-Key used before, a version outdated, a limit reached."""
    answers = operation["responses"]
    sent = {each["name"].lower() for each in operation.get("parameters", [])}
    implied = {
        400: "401" in answers,  # an unknown parameter
        408: "requestBody" in operation,
        409: "idempotency-key" in sent,
        412: "if-match" in sent,
        413: "requestBody" in operation,
        422: "401" in answers,  # X-Session-Id, an id or another name holds a secret
        429: "401" in answers,
        503: "401" in answers,  # the API key is looked up in the database
    }
    for status, answer in documented(*(status for status, comes in implied.items() if comes)).items():
        answers.setdefault(str(status), answer)


def _tell_keys(document: dict[str, Any], *, key_in_query: bool) -> None:
    """Adds how a key is sent to the operations that need one. The middleware reads it, so no route depends on it."""
    schemes = {each.scheme_name: each.model for each in (BEARER, HEADER, *([QUERY] if key_in_query else []))}
    document["components"]["securitySchemes"] = {
        name: model.model_dump(mode="json", by_alias=True, exclude_none=True) for name, model in schemes.items()
    }
    for operations in document["paths"].values():
        for operation in operations.values():
            needs_key = "401" in operation["responses"]
            operation["security"] = [{name: []} for name in schemes] if needs_key else []


PATH_IDS = frozenset({"id", "memory"})
"""Parameters that are UUIDs. Routes take any text and answer 404: there is nothing under another one."""

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

    explained = error_page.html()

    @app.get(error_page.PAGE, include_in_schema=False)
    async def error_codes() -> HTMLResponse:
        return HTMLResponse(
            explained, headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        )

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
    found = find_spec("fastapi_offline")
    assert found is not None, "fastapi-offline is pinned in requirements/"
    assert found.origin is not None, "it is an ordinary package"
    return Path(found.origin).parent / "static"
