"""Where can the routes be read and tried? At /docs, from installed files: nothing is fetched from elsewhere."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

ASSETS = "/docs/assets"


def install(app: FastAPI) -> None:
    """Adds /docs. The package is only located, not imported: it would bring an application class of its own."""
    app.mount(ASSETS, StaticFiles(directory=_assets()), name="docs")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url=str(app.openapi_url),
            title=app.title,
            swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{ASSETS}/favicon.png",
        )


def _assets() -> Path:
    found = find_spec("fastapi_offline")
    assert found is not None, "fastapi-offline is pinned in requirements/"
    assert found.origin is not None, "it is an ordinary package"
    return Path(found.origin).parent / "static"
