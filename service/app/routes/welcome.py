"""The start page. It needs no key, so it shows no version and no model."""

from __future__ import annotations

import base64
import hashlib
import html
import json

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response

CONSOLE = {"/console": ("console", "see and change what is remembered, in the browser")}
DOCUMENTED = {
    "/docs": ("docs", "every route, with examples"),
    "/openapi.json": ("openapi", "for generating clients"),
}
ALWAYS = {"/readyz": ("health", "whether the service serves")}
FIRST = {"method": "POST", "path": "/v1/memories", "body": {"content": "Prefers tea over coffee", "user_id": "alice"}}
KEY, URL = "lox_...", "http://127.0.0.1:8080"
LINES = f"""\
KEY={KEY}
URL={URL}

curl -sS "$URL{FIRST["path"]}" -H "Authorization: Bearer $KEY" \\
  -H "Content-Type: application/json" \\
  -d '{json.dumps(FIRST["body"])}' | python3 -m json.tool

curl -sS "$URL/v1/memories/search?query=what+does+she+drink&user_id=alice" \\
  -H "Authorization: Bearer $KEY" | python3 -m json.tool
"""
# The banner's link has the key in its fragment, which no browser sends: the page itself puts it into the lines.
SCRIPT = f"""
const lines = document.querySelector("pre"), key = decodeURIComponent(location.hash.slice(1));
const put = (old, fresh) => {{ lines.textContent = lines.textContent.replace(old, () => fresh); }};
put("{URL}", location.origin);
if (/^[\\w.~+/=-]{{20,}}$/.test(key)) {{
  put("{KEY}", key);
  history.replaceState(null, "", location.pathname);
}}
"""
STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:46em;margin:3em auto;padding:0 1em}dt{font-weight:bold}"
    "pre{background:#f3f3f3;padding:1em;font-size:13px;white-space:pre-wrap;overflow-wrap:anywhere}"
)
POLICY = (
    f"default-src 'none'; script-src 'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def install(app: FastAPI, *, documented: bool, has_console: bool) -> None:
    """`documented`, `has_console`: whether this service has /docs and /console."""
    places = {**(CONSOLE if has_console else {}), **(DOCUMENTED if documented else {}), **ALWAYS}
    names = {name: place for place, (name, _) in places.items()}
    plain = json.dumps({"name": "Loxodon", **names, "authorization": "Bearer <API key>", "first_request": FIRST})
    page = _page(places)

    @app.get("/", include_in_schema=False)
    async def welcome(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return HTMLResponse(page, headers={"Content-Security-Policy": POLICY, "Vary": "Accept"})
        return Response(plain, media_type="application/json", headers={"Vary": "Accept"})


def _page(places: dict[str, tuple[str, str]]) -> str:
    rows = "".join(f"<dt><a href={place}>{place}</a></dt><dd>{what}</dd>" for place, (_, what) in places.items())
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Loxodon</title><style>{STYLE}</style>"
        f"<h1>Loxodon</h1><p>Memory for AI agents.</p><dl>{rows}</dl>"
        "<p>A first memory, and a question; paste this into a terminal, with the key that <code>make run</code> "
        f"printed:</p><pre>{html.escape(LINES)}</pre><script>{SCRIPT}</script></html>"
    )
