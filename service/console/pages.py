"""Serves the console's files. They hold no secret: the key stays in the browser, which sends it with each API call."""

from __future__ import annotations

from functools import cache
from mimetypes import guess_type

from fastapi import FastAPI
from fastapi.responses import Response

from service.domain.errors import NotFound
from service.kit import shipped

PATH = "/console"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
"""Memories are written by strangers: only the console's own files may run or be loaded."""

HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}


def install(app: FastAPI) -> None:
    """Serves the files at /console; they are read at the first request."""

    @app.get(PATH, include_in_schema=False)
    @app.get(PATH + "/{path:path}", include_in_schema=False)
    async def console(path: str = "index.html") -> Response:
        content = _files().get(path)
        if content is None:
            raise NotFound("The console has no such file.")
        return Response(content, media_type=guess_type(path)[0] or "text/plain", headers=HEADERS)


@cache
def _files() -> dict[str, bytes]:
    """All files of the folder `static` by their paths in it, so that no request's path reaches the file system."""
    folder = shipped.PACKAGE / "console" / "static"
    return {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()
    }
