"""The address of the service itself: where to go from there. It needs no key, so it names no version and no model."""

from __future__ import annotations

import html
import json

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
DOCUMENTED = {
    "/docs": "every route, with examples",
    "/openapi.json": "the same for generating clients",
    "/docs/errors": "what each error code means",
}
ALWAYS = {
    "/readyz": "whether the service serves",
    "README.md": "of the repository: first steps, configuration, and the pages of docs/",
}
FIRST = {"method": "POST", "path": "/v1/memories", "body": {"content": "Prefers tea over coffee", "user_id": "alice"}}
NAMES = {
    "/docs": "docs",
    "/openapi.json": "openapi",
    "/docs/errors": "errors",
    "/readyz": "health",
    "README.md": "readme",
}


def install(app: FastAPI, *, documented: bool) -> None:
    """`documented`: whether this service has /docs."""
    places = {**(DOCUMENTED if documented else {}), **ALWAYS}
    plain = json.dumps(
        {
            "name": "Loxodon",
            **{NAMES[place]: place for place in places},
            "authorization": "Bearer <API key>",
            "first_request": FIRST,
        }
    )
    page = _page(places)

    @app.get("/", include_in_schema=False)
    async def welcome(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return HTMLResponse(page, headers={"Content-Security-Policy": POLICY, "Vary": "Accept"})
        return Response(plain, media_type="application/json", headers={"Vary": "Accept"})


def _page(places: dict[str, str]) -> str:
    rows = "".join(
        f"<dt>{f'<a href={place}>{place}</a>' if place.startswith('/') else place}</dt><dd>{told}</dd>"
        for place, told in places.items()
    )
    first = html.escape(
        f"curl $URL{FIRST['path']} -H 'Authorization: Bearer $KEY' -H 'Content-Type: application/json' \\\n"
        f"  -d '{json.dumps(FIRST['body'])}'"
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Loxodon</title>"
        "<style>body{font:16px/1.5 sans-serif;max-width:46em;margin:3em auto;padding:0 1em}"
        "pre{background:#f3f3f3;padding:1em;overflow:auto}dt{font-weight:bold}</style>"
        f"<h1>Loxodon</h1><p>Memory for AI agents.</p><dl>{rows}</dl><p>A first request:</p><pre>{first}</pre></html>"
    )
