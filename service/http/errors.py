"""Error responses: one table from error class to status, one body (RFC 9457). docs/errors.md lists every code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from http import HTTPStatus
from typing import Annotated, Any, Final, get_args

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, WithJsonSchema
from starlette.exceptions import HTTPException
from starlette.routing import Match

from service.domain import errors
from service.http.json_body import is_json
from service.http.narrowing import FilterInput
from service.http.schemas import ResponseModel
from service.kit import faults

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"

STATUS: Mapping[type[errors.ServiceError], int] = {
    errors.PiiRejected: 422,
    errors.BodyTooLarge: 413,
    errors.TooLarge: 400,
    errors.InvalidInput: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.PlaceLost: 410,
    errors.PreconditionFailed: 412,
    errors.RequestTimeout: 408,
    errors.TooManyRequests: 429,
    errors.Unavailable: 503,
}
"""The closest base class of an error applies."""


HTTP_CODES = ("http_error", "internal_error", "method_not_allowed")
OF_CLASSES = {each.code for each in vars(errors).values() if isinstance(each, type) and hasattr(each, "code")}
CODES = sorted({*HTTP_CODES, *OF_CLASSES})
"""Every `code`; docs/errors.md explains them."""

ErrorCode = Annotated[str, WithJsonSchema({"type": "string", "enum": CODES})]


class Problem(ResponseModel):
    """The body of every error."""

    type: str = Field(description="Always about:blank: `code` is the kind of error", examples=["about:blank"])
    title: str = Field(description="The status as a phrase", examples=["Bad Request"])
    status: int = Field(description="The HTTP status", examples=[400])
    detail: str = Field(description="Error message", examples=["importance: must be less than or equal to 1"])
    error: str = Field(description="Equal to detail", examples=["importance: must be less than or equal to 1"])
    code: ErrorCode = Field(description="Error code", examples=["invalid_input"])
    field: str | None = Field(
        None,
        description="Path inside the body, or name of the parameter; null: no single field",
        examples=["filters.AND[1].value"],
    )
    request_id: str | None = Field(
        None,
        description="As in X-Request-ID and the log; null: not assigned yet",
        examples=["0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"],
    )


def document(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route for OpenAPI, where neither its key nor its parameters imply them
    (app/openapi.py)."""
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": PROBLEM}}}
        for status in statuses
    }


PROBLEM = {"$ref": "#/components/schemas/Problem"}


def status_of(error: errors.ServiceError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def reply(
    request: Request | None,
    status: int,
    *,
    code: str,
    detail: str,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """The response for an error. `detail` must not contain input, SQL or memory text."""
    request_id = request.scope.get("state", {}).get("request_id") if request else None
    body = Problem(
        type="about:blank",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        error=detail,
        code=code,
        field=field,
        request_id=request_id,
    )
    content = body.model_dump()
    foreign = foreign_body(request.scope["path"], content) if request else None
    media_type = "application/json" if foreign else MEDIA_TYPE
    return JSONResponse(foreign or content, status, headers=dict(headers or {}), media_type=media_type)


def of(request: Request | None, error: errors.ServiceError) -> JSONResponse:
    status = status_of(error)
    headers = {}
    if error.retry_after_s is not None or status in (429, 503):
        headers["Retry-After"] = str(max(1, round(error.retry_after_s or 1)))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return reply(request, status, code=error.code, detail=error.detail, field=error.field, headers=headers)


def install(app: FastAPI) -> None:
    app.add_exception_handler(errors.ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)


async def _service_error(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, errors.ServiceError)
    if isinstance(exc, errors.Unavailable):
        log.warning("unavailable", code=exc.code, detail=exc.detail)
    return of(request, exc)


async def _validation(request: Request, exc: Exception) -> JSONResponse:
    """Replaces FastAPI's 422 by a 400 that names the field and never repeats the input, which may contain a secret."""
    assert isinstance(exc, RequestValidationError)
    problems = _misspelt_first(exc.errors())
    if not _field(problems[0]["loc"]):
        if problems[0]["type"] == "missing":
            return of(request, errors.InvalidInput("body: is missing: send a JSON object", field="body"))
        if not is_json(request.headers.get("content-type", "")):
            detail = "body: is not declared as JSON: send Content-Type: application/json"
            return of(request, errors.InvalidInput(detail, field="body"))
    return of(request, invalid(problems, body_model(request), path_of=_field, input_name="body"))


def _misspelt_first(problems: Sequence[Any]) -> Sequence[Any]:
    """Unknown fields if another is missing, which was probably misspelt; else all errors."""
    if problems[0]["type"] != "missing":
        return problems
    outside = problems[0]["loc"][:-1]
    return [
        problem for problem in problems if problem["type"] == "extra_forbidden" and problem["loc"][:-1] == outside
    ] or problems


def invalid(
    problems: Sequence[Any], model: Any, *, path_of: Callable[[Sequence[int | str]], str], input_name: str
) -> errors.InvalidInput:
    """Our error for those of pydantic: the first, or that of a name with a secret, after which the other members of a
    union fail, too. `model`: the type of the input; `input_name`: the name of an error that concerns all of it."""
    for problem in problems:
        if problem["type"] == "pii_rejected":
            where = path_of(problem["loc"])
            return errors.PiiRejected(f"{where}: {problem['msg']}.", field=where)
    field, message = first_message(problems, path_of)
    if problems[0]["type"] == "extra_forbidden":
        message += suggest_field(model, problems[0]["loc"])
    is_over_limit = problems[0]["type"] in ("string_too_long", "too_long", "too_large")
    kind = errors.TooLarge if is_over_limit else errors.InvalidInput
    return kind(f"{field or input_name}: {message}", field=field or input_name)


JSON_TYPES: Mapping[str, str] = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "list_type": "a list",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_type": "a string",
}
"""The expected JSON type, by pydantic's error type."""

PLAIN_MESSAGES: Mapping[str, str] = {
    "bool_parsing": "must be true or false",
    "int_parsing": "must be a whole number",
    "missing": "is missing",
    "uuid_parsing": "must be a UUID",
}
"""Replacements for pydantic's messages that show the input or mention Python."""


def first_message(problems: Sequence[Any], path_of: Callable[[Sequence[int | str]], str]) -> tuple[str, str]:
    """Field and message of pydantic's first error; the field is "" for the whole body. `path_of` turns a location into
    a path. A validator of a whole model names the field in its message, as in "start: must be before end"."""
    first = problems[0]
    message = re.sub(r"^[A-Z]\w+ should ", "must ", str(first["msg"]).removeprefix("Value error, "))
    where = path_of(first["loc"])
    if first["type"] in ("string_too_short", "too_short") and first["ctx"]["min_length"] == 1:
        return where, "must not be empty"
    if first["type"] == "too_long" and isinstance(first.get("input"), str):  # checked after a validator of ours
        return where, f"must have at most {first['ctx']['max_length']} characters"
    if first["type"] in PLAIN_MESSAGES:
        return where, PLAIN_MESSAGES[first["type"]]
    if first["type"] == "extra_forbidden":
        *outside, name = first["loc"]
        if str(name)[:1].isupper() and str(name).isidentifier():  # a field of the caller, not a member of a union
            around = path_of(outside)
            where = f"{around}.{name}" if around else str(name)
        return where, "is not a field of this request"
    if first["type"] in JSON_TYPES:  # each member of a union is an error of its own
        types = [problem["type"] for problem in problems if path_of(problem["loc"]) == where]
        return where, "must be " + " or ".join(dict.fromkeys(JSON_TYPES[each] for each in types if each in JSON_TYPES))
    named = FIELD_AND_MESSAGE.fullmatch(message)
    if named is None or named["field"] == where:
        return where, message
    return (f"{where}.{named['field']}" if where else named["field"]), named["rest"]


def _field(where: Sequence[int | str]) -> str:
    """The path of a validation error, without its first part: body, query, path or header."""
    kind, *parts = where
    if kind == "header" and parts:
        return str(parts[0])
    return path(parts if kind in ("body", "query", "path") else where)


async def _http(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, HTTPException)
    if exc.status_code == 404:
        shown = "; /docs lists them all." if request.app.openapi_url else "."
        return reply(request, 404, code="not_found", detail=f"There is no such route{shown}")
    if exc.status_code == 405:
        allowed = ", ".join(accepted_methods(request))
        detail = f"This path accepts {allowed}." if allowed else "This path accepts a different method."
        return reply(request, 405, code="method_not_allowed", detail=detail, headers={"Allow": allowed})
    return reply(request, exc.status_code, code="http_error", detail=str(exc.detail), headers=exc.headers)


def log_unexpected(exc: Exception) -> None:
    """Logs class and location of an unexpected exception, without its message, which may contain a user's text."""
    details = {"kind": faults.classes(exc), "where": faults.locate(exc), **faults.details(exc)}
    log.error("unexpected", **details, frames=faults.frames(exc))


def answer_unexpected(request: Request) -> JSONResponse:
    return reply(request, 500, code="internal_error", detail="Something went wrong on our side.")


def path(parts: Sequence[Any]) -> str:
    """("messages", 0, "role") becomes messages[0].role; names of union members are omitted."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif isinstance(part, str) and part.isidentifier() and _is_field(part):
            text += f".{part}" if text else part
    return text


def _is_field(part: str) -> bool:
    """Whether the part is a field and not the name of a union member, which pydantic adds."""
    return part in CONNECTIVE_FIELDS or (not part[0].isupper() and part not in UNION_MEMBERS)


FIELD_AND_MESSAGE = re.compile(r"(?P<field>[a-z_.]+): (?P<rest>.+)", re.DOTALL)
CONNECTIVE_FIELDS = frozenset({"AND", "OR", "NOT"})
UNION_MEMBERS = frozenset({"str", "list", "int", "float", "dict", "bool"})


# -- errors in the form that clients of other systems read; the sentence stays ours ------------------------------------

MEM0: Final = "/v1/compat/mem0"
MEM0_FIELDS: Final = {"content": "text", "min_score": "threshold", "expires_at": "expiration_date"}
AUTOMEM: Final = "/v1/compat/automem"


def foreign_body(path: str, problem: Mapping[str, Any]) -> dict[str, Any] | None:
    """The body of an error under this path; None where it is a Problem."""
    more = {name: problem[name] for name in ("field", "request_id")}
    if path.startswith(f"{MEM0}/"):
        field = MEM0_FIELDS.get(problem["field"], problem["field"])
        detail = problem["detail"].replace(f"{problem['field']}:", f"{field}:", 1)
        return {"detail": detail, "code": problem["code"], **more, "field": field}
    if path.startswith(f"{AUTOMEM}/"):
        message = {
            "status": "error",
            "code": problem["status"],
            "message": problem["detail"],
            "error": problem["detail"],
        }
        return {**message, "error_code": problem["code"], **more}
    return None


MISSPELT_RATIO = 0.75
"""From this ratio of difflib on a name counts as misspelt: userId and user_id have 0.92, text and content 0.55."""


def suggest_name(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: the closest known name, or else all of them."""
    names = list(known)
    folded = {each.casefold(): each for each in names}
    closest = get_close_matches(name.casefold(), folded, n=1, cutoff=MISSPELT_RATIO)
    if closest:
        return f"; did you mean {folded[closest[0]]}?"
    return f"; known names: {', '.join(names)}." if names else "."


def suggest_field(model: Any, where: Sequence[int | str]) -> str:
    """A suggestion for a field of a body. `model`: the type of the body; `where`: the path, ending in the name."""
    *outside, name = where
    models = _models(model)
    for part in outside:
        inner = [field.annotation for each in models for key, field in each.model_fields.items() if key == part]
        models = {nested for annotation in inner for nested in _models(annotation)} or models
    known = [key for each in sorted(models, key=lambda each: each.__name__) for key in each.model_fields]
    hint = suggest_name(str(name), dict.fromkeys(known))
    if FilterInput in models and "known names" in hint:
        hint += ' A condition is {"field": ..., "operator": "eq", "value": ...}.'
    return hint


def _models(annotation: Any) -> set[type[BaseModel]]:
    """The models that a value of this type may be, or that a list of it may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {model for each in get_args(annotation) for model in _models(each)}


def body_model(request: Request) -> Any:
    """The type of the route's body; None where it has none."""
    route = request.scope.get("route")
    field = route.body_field if isinstance(route, APIRoute) else None
    return field.field_info.annotation if field is not None else None


METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
"""Those that routes name; where GET works, HEAD does."""


def accepted_methods(request: Request) -> list[str]:
    """The methods that the request's path takes. Starlette's Allow lists those of the first matching route only."""
    scopes = {method: {**request.scope, "method": method} for method in METHODS}
    return [method for method in METHODS if any(r.matches(scopes[method])[0] is Match.FULL for r in request.app.routes)]
