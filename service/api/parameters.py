"""Does a request name a query parameter that its route does not have?

A misspelt field of a body is refused, so is a misspelt parameter: a DELETE of one `chanel` would take them all.
"""

from __future__ import annotations

from fastapi import Request, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute

from service.errors import InvalidInput

EVERYWHERE = frozenset({"api_key"})


def refuse_unknown(request: Request) -> None:
    """Raises InvalidInput naming the first parameter that nobody reads."""
    given, route = request.query_params.keys(), request.scope.get("route")
    if not given or not isinstance(route, APIRoute):
        return
    fields = get_flat_params(route.dependant)
    known = EVERYWHERE | {each.alias for each in fields if isinstance(each.field_info, params.Query)}
    for name in given:
        if name not in known:
            raise InvalidInput(f"{name}: is not a parameter of this request.", field=name)
