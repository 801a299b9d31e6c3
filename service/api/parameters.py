"""Does a request name a query parameter that its route does not have, or give one two values?

A misspelt field of a body is refused, so is a misspelt parameter: a DELETE of one `chanel` would take them all.
"""

from __future__ import annotations

from typing import Any, get_args, get_origin

from fastapi import Request, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute

from service.api import hints
from service.errors import InvalidInput

EVERYWHERE = frozenset({"api_key"})


def refuse_unknown(request: Request) -> None:
    """Raises InvalidInput naming the first parameter that nobody reads, or that came with two values and takes one."""
    given, route = request.query_params, request.scope.get("route")
    if not given or not isinstance(route, APIRoute):
        return
    fields = {
        each.alias: each.field_info.annotation
        for each in get_flat_params(route.dependant)
        if isinstance(each.field_info, params.Query)
    }
    for name in given:
        if name not in fields and name not in EVERYWHERE:
            told = f"{name}: is not a parameter of this request{hints.instead(name, fields)}"
            raise InvalidInput(told, field=name)
    if len(given.multi_items()) > len(given):
        for name in given:
            if len(set(given.getlist(name))) > 1 and not _takes_several(fields.get(name)):
                raise InvalidInput(f"{name}: came with several values, and takes one.", field=name)


def _takes_several(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(_takes_several(each) for each in get_args(annotation))
