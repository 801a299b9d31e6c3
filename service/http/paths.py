"""The path of a request as it was sent: an encoded slash or line break belongs to a name and never ends it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from starlette.types import Scope


def of(scope: Scope) -> str:
    """The path that routes match: still encoded, each segment in one way, without the trailing slash that is optional.
    ASGI's own `path` is decoded as a whole, so %2F in a name would be a slash of the route."""
    raw: bytes | None = scope.get("raw_path")
    path = quote(scope["path"]) if raw is None else raw.decode("latin-1")
    if len(path) > 1:
        path = path.removesuffix("/")  # a redirect would lose the body
    return "/".join(quote(unquote(each), safe="") for each in path.split("/")) if "%" in path else path


def names(scope: Scope, *, with_slash: bool) -> dict[str, Any]:
    """The parameters that the route has found in the path, decoded. `with_slash`: the last one may hold slashes as they
    are, so the one that `of` has cut is part of it: DELETE /v1/scopes/user/bob/ is not about bob."""
    found = {name: unquote(value) for name, value in scope["path_params"].items()}
    if with_slash and scope["raw_path"].endswith(b"/"):
        found[list(found)[-1]] += "/"
    return found
