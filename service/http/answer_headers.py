"""Headers of every response, whether from a route, an error handler, the middleware or a preflight.

Responses contain personal data: no cache may keep them, and no browser may guess another content type.
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.kit.settings import Settings

EVERYWHERE = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))

BROWSERS_MAY_SEND = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "Last-Event-ID",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Protocol-Version",
    "Prefer",
    "X-API-Key",
    "X-Agent-Id",
    "X-Channel",
    "X-Loxodon-Position",
    "X-Request-ID",
    "X-Run-Id",
    "X-Session-Id",
    "X-User-Id",
)
BROWSERS_MAY_READ = (
    "ETag",
    "Idempotency-Replayed",
    "Location",
    "Preference-Applied",
    "Retry-After",
    "WWW-Authenticate",
    "X-Loxodon-Position",
    "X-Request-ID",
)
METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


class AnswerHeaders:
    """The outermost middleware: adds EVERYWHERE to each response that does not say otherwise."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = dict(message.get("headers", ()))
                message["headers"] = [*message.get("headers", ()), *(each for each in EVERYWHERE if each[0] not in own)]
            await send(message)

        await self._app(scope, receive, sending)


def install(app: FastAPI, settings: Settings) -> None:
    """Call last, so that it wraps the other middleware. Without `cors_origins` there are no CORS headers, and browsers
    block pages of other origins. No cookies are used, so none are allowed."""
    if settings.server.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.server.cors_origins,
            allow_methods=METHODS,
            allow_headers=BROWSERS_MAY_SEND,
            expose_headers=BROWSERS_MAY_READ,
        )
    app.add_middleware(AnswerHeaders)
