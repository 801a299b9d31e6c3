"""Suggestions in error messages: the name or the method that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
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
    models = _models(model)
    for part in outside:
        inner = [field.annotation for each in models for key, field in each.model_fields.items() if key == part]
        models = {nested for annotation in inner for nested in _models(annotation)} or models
    known = [key for each in sorted(models, key=lambda each: each.__name__) for key in each.model_fields]
    hint = of_name(str(name), dict.fromkeys(known))
    if FilterInput in models and "known are" in hint:
        hint += f' A condition is {{"field": "{name}", "operator": "eq", "value": ...}}.'
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


def methods(request: Request) -> list[str]:
    """The methods that the request's path takes. Starlette's Allow lists those of the first matching route only."""
    scopes = {method: {**request.scope, "method": method} for method in METHODS}
    return [method for method in METHODS if any(r.matches(scopes[method])[0] is Match.FULL for r in request.app.routes)]
