"""What would have been right, where a request names what nobody reads?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import Match

from service.api.filters import FilterIn

ALIKE = 0.75
"""difflib's ratio from which a name passes for a misspelt one: userId and user_id have 0.92, text and content 0.55."""


def instead(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: the known one that was probably meant, else all there are."""
    names = list(known)
    folded = {each.casefold(): each for each in names}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=ALIKE)
    if near:
        return f"; did you mean {folded[near[0]]}?"
    return f"; known are {', '.join(names)}." if names else "."


def of_field(model: Any, where: Sequence[int | str]) -> str:
    """The same for a field at this place (its own name last) of a body of this type."""
    *outside, name = where
    here = _models(model)
    for part in outside:
        inner = [field.annotation for each in here for key, field in each.model_fields.items() if key == part]
        here = {found for annotation in inner for found in _models(annotation)} or here
    known = [key for each in sorted(here, key=lambda each: each.__name__) for key in each.model_fields]
    told = instead(str(name), dict.fromkeys(known))
    if FilterIn in here and "known are" in told:
        told += f' A condition is {{"field": "{name}", "operator": "eq", "value": ...}}.'
    return told


def _models(annotation: Any) -> set[type[BaseModel]]:
    """The models that a value of this type may be, or hold in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {found for each in get_args(annotation) for found in _models(each)}


def body_model(request: Request) -> Any:
    """The type of the route's body; None where it has none."""
    route = request.scope.get("route")
    field = route.body_field if isinstance(route, APIRoute) else None
    return field.field_info.annotation if field is not None else None


METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def methods(request: Request) -> list[str]:
    """What the address of the request takes, by name. Starlette's Allow names those of the first route alone."""
    asked = {method: {**request.scope, "method": method} for method in METHODS}
    return [method for method in METHODS if any(r.matches(asked[method])[0] is Match.FULL for r in request.app.routes)]
