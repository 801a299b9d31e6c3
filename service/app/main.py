"""The FastAPI application: routers, middleware, error handlers, and what lives as long as it does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig

from service import __version__
from service.access.token_signing import TokenSigner
from service.app import openapi
from service.app.routes import health, reference, welcome
from service.cognition.routes import goals, profiles, strategies, tools
from service.compat import automem, automem_recall, mem0
from service.console import pages
from service.conversations.routes import conversations
from service.domain.request import Replay
from service.erasure.routes import conversation_deletion, deletion, forget
from service.feed.routes import changes, webhooks
from service.feed.routes.changes import OpenStreams
from service.graph.routes import entities
from service.http import admission, errors, middleware, writes
from service.http.admission import Admission
from service.http.key_ring import KeyRing, KeyUses
from service.intake.routes import operations, store
from service.jobs.routes import jobs
from service.kit import process
from service.kit.settings import Settings
from service.mcp.routes import mcp
from service.memories.routes import bulk, decisions, memories, relations, reviews
from service.observability import logs, tracing
from service.providers import presets
from service.runtime.background import ReadLog, UseCounter, in_background, running
from service.runtime.opening import open_resources
from service.runtime.resources import Resources
from service.search.routes import recall, search, timeline, turns
from service.tenants.routes import api_keys, audit, scopes, workspaces
from service.understanding import model_calls
from service.upkeep.routes import optimization
from service.worker.monitoring import Scrape
from service.working.routes import working

# search, tags and bulk come before memories, or "search" would be taken for an id; automem takes the
# remaining paths under its address
PARTS = (
    health,
    search,
    bulk,
    store,
    memories,
    forget,
    deletion,
    relations,
    recall,
    timeline,
    conversations,
    turns,
    conversation_deletion,
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
    mem0,
    automem_recall,
    automem,
    mcp,
)

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""FastAPI's own tracing would record bodies and messages of exceptions; ours is service/observability/tracing.py."""

Opener = Callable[[Settings], AbstractAsyncContextManager[Resources]]


FAILED_KEYS_PER_MIN = 100
"""Wrong keys that an address may send to a process, then 429: nobody mistypes so often, and guessing takes years."""


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
            app.state.resources = resources.without_access()
            app.state.reads = reads
            app.state.uses = uses
            app.state.key_uses = key_uses
            app.state.admission = Admission(resources.settings)
            app.state.tokens = TokenSigner(resources.db, presets.secret(settings.server.token_secret))
            app.state.streams = OpenStreams()
            app.state.mcp_positions = {}
            app.state.budgets = admission.key_budgets(settings.server.key_requests_per_s)
            app.state.keys = KeyRing(resources.db, failed_per_min=FAILED_KEYS_PER_MIN)
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
        generate_unique_id_function=lambda route: route.name,  # a handler is named after its operation
        telemetry=NO_TELEMETRY,
    )
    errors.install(app)
    app.add_exception_handler(Replay, writes.answer_replay)
    middleware.install(app, settings)
    for part in PARTS:
        app.include_router(part.router)
    openapi.install(app, key_in_query=settings.server.auth_allow_query)
    welcome.install(app, documented=settings.server.serve_docs, has_console=settings.server.serve_console)
    if settings.server.serve_console:
        pages.install(app)
    if settings.server.serve_docs:
        openapi.serve_page(app)
    return app


def app_from_env() -> FastAPI:
    """The factory that uvicorn calls."""
    settings = Settings.from_env(os.environ)
    logs.set_up(settings)
    tracing.set_up(os.environ, "api")
    app = create_app(settings, _open_and_probe)
    analyse_routes(app)
    process.collect_garbage_rarely()
    return app


@asynccontextmanager
async def _open_and_probe(settings: Settings) -> AsyncIterator[Resources]:
    """The resources, while the language model is asked for a first answer."""
    async with open_resources(settings) as resources, running(model_calls.probe(resources)):
        yield resources


def analyse_routes(app: FastAPI) -> None:
    """Lets all routes analyse their parameters. Otherwise each does so on the first request that passes it, in some 5
    ms, and the first request to the last route holds up all others for half a second."""
    nowhere = {"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []}
    for route in app.routes:
        route.matches(nowhere)
