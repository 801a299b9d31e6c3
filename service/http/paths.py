"""The path of a request as sent: an encoded slash or line break is part of a name."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from starlette.types import Scope


def of(scope: Scope) -> str:
    """The path for routing: normalised but still encoded, without the optional trailing slash. In ASGI's decoded `path`
    %2F in a name would be a slash of the route."""
    raw: bytes | None = scope.get("raw_path")
    path = quote(scope["path"]) if raw is None else raw.decode("latin-1")
    if len(path) > 1:
        path = path.removesuffix("/")  # a redirect would lose the body
    return "/".join(quote(unquote(each), safe="") for each in path.split("/")) if "%" in path else path


def names(scope: Scope, *, with_slash: bool) -> dict[str, Any]:
    """The parameters of the path, decoded. `with_slash`: the last one may contain slashes, so the trailing slash that
    `of` removed belongs to it: DELETE /v1/scopes/user/bob/ is not about bob."""
    values = {name: unquote(value) for name, value in scope["path_params"].items()}
    if with_slash and scope["raw_path"].endswith(b"/"):
        values[list(values)[-1]] += "/"
    return values
