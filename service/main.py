"""The FastAPI application: routers, middleware, error handlers, and what lives as long as it does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig

from service import __version__, garbage, logs, tracing, warmup
from service.api import (
    answer_headers,
    api_keys,
    audit,
    bulk,
    changes,
    conversations,
    decisions,
    entities,
    entity_graph,
    errors,
    forget,
    forgetting,
    goals,
    health,
    jobs,
    mcp,
    memories,
    openapi,
    operations,
    optimization,
    profiles,
    recall,
    reference,
    relations,
    reviews,
    scopes,
    search,
    store,
    strategies,
    tags,
    talk_deletion,
    timeline,
    tokens,
    tools,
    turns,
    webhooks,
    welcome,
    why,
    working,
    workspaces,
    writes,
)
from service.api.admission import Admission
from service.api.budgets import Budgets
from service.api.change_stream import OpenStreams
from service.api.compat import automem, automem_recall, mem0
from service.api.deps import KeyRing
from service.api.middleware import RequestMiddleware
from service.api.token_signing import TokenSigner
from service.db.idempotency import Replay
from service.memory.write_behind import KeyUses, ReadLog, UseCounter, in_background
from service.opening import open_resources
from service.resources import Resources
from service.scrape import Scrape
from service.settings import Settings

# search, tags and bulk stand before memories, or "search" would be taken for an id; so does
# entity_graph before entities; automem takes what is left under its address
PARTS = (
    health,
    search,
    tags,
    bulk,
    store,
    memories,
    forget,
    forgetting,
    relations,
    recall,
    timeline,
    conversations,
    turns,
    talk_deletion,
    why,
    entity_graph,
    entities,
    decisions,
    reviews,
    scopes,
    profiles,
    audit,
    changes,
    webhooks,
    operations,
    optimization,
    jobs,
    reference,
    working,
    goals,
    tools,
    strategies,
    workspaces,
    api_keys,
    tokens,
    mem0,
    automem_recall,
    automem,
    mcp,
)

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""FastAPI's own would record bodies and the messages of exceptions; ours is service/tracing.py."""

Opener = Callable[[Settings], AbstractAsyncContextManager[Resources]]


def create_app(settings: Settings, opener: Opener = open_resources) -> FastAPI:
    """The API. `opener` gives the resources for the time of the lifespan; tests bring their own."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with (
            opener(settings) as resources,
            in_background(ReadLog(resources.db)) as reads,
            in_background(UseCounter(resources.db)) as uses,
            in_background(KeyUses(resources.db)) as key_uses,
        ):
            app.state.resources = resources
            app.state.reads = reads
            app.state.uses = uses
            app.state.key_uses = key_uses
            app.state.admission = Admission(resources.settings)
            app.state.tokens = TokenSigner(resources.db, resources.settings.token_secret_value)
            app.state.streams = OpenStreams(per_key=settings.streams_per_key, in_all=settings.streams)
            app.state.budgets = Budgets(resources.db)
            app.state.keys = KeyRing(resources.db, failed_per_min=resources.settings.failed_keys_per_min)
            app.state.probe = health.Probe(resources.db)
            app.state.scrape = Scrape(resources)
            yield
        await asyncio.to_thread(tracing.shut_down)

    app = FastAPI(
        title="Loxodon",
        version=__version__,
        summary="Memory for AI agents on one Postgres database.",
        description=openapi.DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        lifespan=lifespan,
        redirect_slashes=False,
        openapi_url=None,  # openapi.serve_page
        docs_url=None,
        redoc_url=None,  # few routes are open: docs/decisions/021-open-routes.md
        swagger_ui_oauth2_redirect_url=None,
        telemetry=NO_TELEMETRY,
    )
    errors.install(app)
    app.add_exception_handler(Replay, writes.repeated)
    app.add_middleware(RequestMiddleware, settings=settings)
    answer_headers.install(app, settings)
    for part in PARTS:
        app.include_router(part.router)
    openapi.install(app, key_in_query=settings.auth_allow_query)
    welcome.install(app, documented=settings.serve_docs)
    if settings.serve_docs:
        openapi.serve_page(app)
    return app


def app_from_env() -> FastAPI:
    """The factory that uvicorn calls."""
    settings = Settings.from_env(os.environ)
    logs.set_up(settings)
    tracing.set_up(os.environ, "api")
    app = create_app(settings, lambda settings: warmup.opened(settings, app))
    garbage.collect_rarely()
    return app
