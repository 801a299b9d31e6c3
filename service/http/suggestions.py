"""Suggestions in error messages: the name or the method that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, get_args

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter
from starlette.routing import Match

from service.http.narrowing import FilterInput

MISSPELT_RATIO = 0.75
"""From this ratio of difflib on a name counts as misspelt: userId and user_id have 0.92, text and content 0.55."""


def of_name(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: the closest known name, or else all of them."""
    names = list(known)
    folded = {each.casefold(): each for each in names}
    closest = get_close_matches(name.casefold(), folded, n=1, cutoff=MISSPELT_RATIO)
    if closest:
        return f"; did you mean {folded[closest[0]]}?"
    return f"; known are {', '.join(names)}." if names else "."


def of_field(model: Any, where: Sequence[int | str]) -> str:
    """A suggestion for a field of a body. `model`: the type of the body; `where`: the path, ending in the name."""
    *outside, name = where
    here = _models(model)
    for part in outside:
        inner = [field.annotation for each in here for key, field in each.model_fields.items() if key == part]
        here = {found for annotation in inner for found in _models(annotation)} or here
    known = [key for each in sorted(here, key=lambda each: each.__name__) for key in each.model_fields]
    hint = of_name(str(name), dict.fromkeys(known))
    if FilterInput in here and "known are" in hint:
        hint += f' A condition is {{"field": "{name}", "operator": "eq", "value": ...}}.'
    return hint


def _models(annotation: Any) -> set[type[BaseModel]]:
    """The models that a value of this type may be, or that a list of it may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {found for each in get_args(annotation) for found in _models(each)}


def body_model(request: Request) -> Any:
    """The type of the route's body; None where it has none."""
    route = request.scope.get("route")
    field = route.body_field if isinstance(route, APIRoute) else None
    return field.field_info.annotation if field is not None else None


def of_missing(request: Request, where: Sequence[int | str]) -> str:
    """The end of a sentence that misses a value: what it may be. `where`: as in pydantic's error, the part of the
    request first."""
    kind, *inside = where
    shape = _in_body(body_model(request), inside) if kind == "body" else _in_url(request, str(inside[-1]))
    told = _told(shape, shape.get("$defs", {})) if shape else ""
    return f"; give {told}" if told else ""


def _in_body(model: Any, inside: Sequence[int | str]) -> Mapping[str, Any]:
    """The schema of a field of the body; empty for what cannot be told."""
    here: set[type[BaseModel]] = _models(model)
    for part in inside[:-1]:
        within = [field.annotation for each in here for name, field in each.model_fields.items() if name == part]
        here = {found for annotation in within for found in _models(annotation)} or here
    for each in here:
        schema = _schema(each)
        if found := schema.get("properties", {}).get(inside[-1]):
            return {**found, "$defs": schema.get("$defs", {})}
    return {}


@lru_cache(maxsize=64)
def _schema(model: type[BaseModel]) -> Mapping[str, Any]:
    return model.model_json_schema()


def _in_url(request: Request, name: str) -> Mapping[str, Any]:
    route = request.scope.get("route")
    known = get_flat_params(route.dependant) if isinstance(route, APIRoute) else []
    info = next((each.field_info for each in known if each.alias == name), None)
    if info is None or info.annotation is None:
        return {}
    return TypeAdapter(info.annotation).json_schema()


WORDS: Mapping[str, str] = {
    "uuid": "a UUID",
    "date-time": "an ISO 8601 time",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}
"""By format, else by JSON type."""


def _told(shape: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    """What a value of this schema is, in words; empty where it may be anything."""
    if "$ref" in shape:
        return _told(named.get(shape["$ref"].rpartition("/")[2], {}), named)
    if words := shape.get("enum") or ([shape["const"]] if "const" in shape else None):
        return "one of " + ", ".join(map(str, words)) if len(words) > 1 else str(words[0])
    if choice := shape.get("anyOf"):
        return " or ".join(dict.fromkeys(filter(None, (_told(each, named) for each in choice))))
    found = WORDS.get(shape.get("format", "")) or WORDS.get(shape.get("type", ""), "")
    if found and "minimum" in shape and "maximum" in shape:
        found += f" from {shape['minimum']} to {shape['maximum']}"
    if found == "a list" and (of := _told(shape.get("items", {}), named)):
        found += f", each {of}"
    return found


METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def methods(request: Request) -> list[str]:
    """The methods that the request's path takes. Starlette's Allow lists those of the first matching route only."""
    scopes = {method: {**request.scope, "method": method} for method in METHODS}
    return [method for method in METHODS if any(r.matches(scopes[method])[0] is Match.FULL for r in request.app.routes)]
