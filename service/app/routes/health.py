"""Liveness, readiness, health and metrics (docs/decisions/021-open-routes.md).

Open routes only say whether the service is well. Versions, models, the queue and the reason need the right `metrics`;
the reason is also logged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

import structlog
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import Field

from service import __version__
from service.domain.access import Caller, Right
from service.domain.errors import SchemaMismatch, ServiceError
from service.http.deps import ResourcesOf, needs
from service.http.json_body import JsonRoute
from service.http.schemas import ResponseModel
from service.observability.metrics import HTTP_WAITING
from service.postgres import readiness
from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.worker.monitoring import CONTENT_TYPE, Scrape

router = APIRouter(tags=["health"], route_class=JsonRoute)
log = structlog.get_logger(__name__)

REMEMBERED_S = 1.0
Status = Literal["ok", "unavailable"]
NOT_DOWN = "ok, or unavailable while the database does not answer within 2 s or has a schema of another version"


class HealthResponse(ResponseModel):
    """200 with `ok`, 503 with `unavailable`."""

    status: Status = Field(description=NOT_DOWN)
    detail: str | None = Field(
        default=None,
        description="What to run if the schema is of another version; absent or null otherwise",
    )


class HealthDetailsResponse(ResponseModel):
    """200 with `ok`, 503 with `unavailable`."""

    status: Status = Field(description=NOT_DOWN)
    detail: str | None = Field(
        default=None,
        description="What is wrong, or that the settings name a different embedder than the one that computed the "
        "vectors; null: nothing is wrong",
    )
    version: str = Field(description="Version of this service")
    database: Literal["up", "down"] = Field(description="Whether the database answers")
    postgres: str | None = Field(default=None, description="Version of the server; null: the database is down")
    pgvector: str | None = Field(default=None, description="Version of the extension; null: the database is down")
    schema_version: int | None = Field(
        default=None, description="Number of the last migration; null: the database is down"
    )
    queue_depth: int | None = Field(
        default=None,
        description="Jobs of all workspaces that are due and not started; null: the database is down",
    )
    embedder: str | None = Field(default=None, description="The model in use; null: the database is down")
    llm: str | None = Field(default=None, description="The model in use; null: none, or the database is down")
    llm_status: str | None = Field(
        default=None,
        description="`answers`, `no answer yet`, or the result of the last call to the model; null: as for `llm`",
    )


class Probe:
    """Cached health of the database: requests within REMEMBERED_S share one check, so open routes cannot load it."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._looking = asyncio.Lock()
        self._found = HealthResponse(status="unavailable")
        self._until = float("-inf")

    async def status(self) -> Status:
        return (await self.health()).status

    async def health(self) -> HealthResponse:
        async with self._looking:
            if self._clock() >= self._until:
                self._found = await self._look()
                self._until = self._clock() + REMEMBERED_S
            return self._found

    async def _look(self) -> HealthResponse:
        try:
            await readiness.check(self._database, within_s=readiness.PROBE_S)
        except ServiceError as exc:
            log.warning("not ready", reason=exc.detail)
            return HealthResponse(status="unavailable", detail=exc.detail if isinstance(exc, SchemaMismatch) else None)
        return HealthResponse(status="ok")


WELL_OR_NOT: dict[int | str, dict[str, Any]] = {503: {"model": HealthResponse}}


@router.get("/livez", summary="Check that the process is alive", response_model=HealthResponse)
async def livez() -> Response:
    """Does not touch the database, so that a slow database does not get the process killed."""
    return JSONResponse({"status": "ok"})


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="Check that the service can answer requests",
    response_model=HealthResponse,
    responses=WELL_OR_NOT,
)
@router.get(
    "/health",
    operation_id="health_unversioned",
    summary="Get the health of the service",
    response_model=HealthResponse,
    include_in_schema=False,
)
@router.get("/v1/health", summary="Get the health of the service", response_model=HealthResponse, responses=WELL_OR_NOT)
async def health(request: Request) -> Response:
    """200 if the database answers within 2 s and this version can read its schema, else 503. Needs no key. The reason
    is in the log and in `/v1/health/details`."""
    probe: Probe = request.app.state.probe
    response = await probe.health()
    return JSONResponse(response.model_dump(exclude_none=True), _http_status(response.status))


@router.get(
    "/v1/health/details",
    operation_id="get_health_details",
    summary="Get the health of the service with versions, models and the queue",
    response_model=HealthDetailsResponse,
    responses={503: {"model": HealthDetailsResponse}},
)
async def health_details(res: ResourcesOf, caller: Annotated[Caller, Depends(needs(Right.METRICS))]) -> Response:
    """503 if the database does not answer within 2 s or has a schema that this version cannot serve."""
    details = await _details(res)
    return JSONResponse(details.model_dump(), _http_status(details.status))


@router.get("/metrics", summary="Get Prometheus metrics", response_class=PlainTextResponse)
async def metrics(request: Request, caller: Annotated[Caller, Depends(needs(Right.METRICS))]) -> Response:
    """Metrics in the Prometheus text format, without workspaces or users as labels. Figures from the database are a few
    seconds old, and older while it is down."""
    scrape: Scrape = request.app.state.scrape
    HTTP_WAITING.set(request.app.state.admission.waiting)
    return Response(await scrape.text(), media_type=CONTENT_TYPE)


def _http_status(status: Status) -> int:
    return 200 if status == "ok" else 503


async def _details(res: Resources) -> HealthDetailsResponse:
    try:
        status = await readiness.status(res.db)
    except SchemaMismatch as exc:
        return HealthDetailsResponse(status="unavailable", version=__version__, database="up", detail=exc.detail)
    except ServiceError:
        return HealthDetailsResponse(status="unavailable", version=__version__, database="down")
    return HealthDetailsResponse.of(
        status,
        status="ok",
        detail=res.active.note if res.active else None,
        version=__version__,
        database="up",
        schema_version=status.revision,
        embedder=res.embedder.model,
        llm=res.llm.model if res.llm else None,
        llm_status=res.model_status.result if res.llm else None,
    )
