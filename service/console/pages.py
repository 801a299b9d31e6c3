"""Serves the console's files. They hold no secret: the key stays in the browser, which sends it with each API call."""

from __future__ import annotations

import hashlib
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
FIRST_VIEW = "views/memories.js"
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def install(app: FastAPI) -> None:
    """Serves the files at /console; they are read at the first request."""

    @app.get(PATH, include_in_schema=False)
    @app.get(PATH + "/{path:path}", include_in_schema=False)
    async def console(path: str = "index.html") -> Response:
        content = _files().get(path)
        if content is None:
            raise NotFound("The console has no such file.")
        headers = HEADERS | (FOR_EVER if "/" in path else {})
        return Response(content, media_type=guess_type(path)[0] or "text/plain", headers=headers)


@cache
def _files() -> dict[str, bytes]:
    """All files by their paths, so that no request's path reaches the file system.

    The paths begin with a digest of all files, so browsers may keep them until one changes. The page names the modules
    of the first view, so that a browser need not read one to find the next.
    """
    folder = shipped.PACKAGE / "console" / "static"
    files = {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()
    }
    version = hashlib.sha256(b"".join(files.values())).hexdigest()[:16]
    page, base = files.pop("index.html"), f"{PATH}/{version}/".encode()
    first = [path for path in files if path.endswith(".js") and (path == FIRST_VIEW or not path.startswith("views/"))]
    links = b"".join(b'  <link rel="modulepreload" href="%s%s">\n' % (base, path.encode()) for path in first)
    page = page.replace(b"/console/", base).replace(b"</head>", links + b"</head>")
    return {f"{version}/{path}": content for path, content in files.items()} | {"": page, "index.html": page}
