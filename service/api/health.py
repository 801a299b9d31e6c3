"""Liveness, readiness, health and metrics. Only the metrics need a key (docs/decisions/021-open-routes.md)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest
from pydantic import Field

from service import __version__
from service.api import errors
from service.api.deps import needs
from service.api.schemas import ResponseModel
from service.db import readiness
from service.db.cognition import working
from service.domain.access import Caller, Right
from service.errors import SchemaMismatch, ServiceError
from service.resources import Resources

router = APIRouter(tags=["health"])

READY_TIMEOUT_S = 2.0
WORKING_BYTES = Gauge("working_memory_bytes", "Size of working memory with its indexes, of all workspaces")


class HealthResponse(ResponseModel):
    """200 with `ok`, 503 with `unavailable`."""

    status: Literal["ok", "unavailable"] = Field(
        description="ok, or unavailable while the database does not answer within 2 s or has another schema"
    )
    detail: str | None = Field(
        default=None, description="What is wrong, or that only reads are served; null: nothing is wrong"
    )
    version: str = Field(description="Of this service")
    database: Literal["up", "down"] = Field(description="Whether it answers")
    postgres: str | None = Field(default=None, description="Version of the server; null: the database is down")
    pgvector: str | None = Field(default=None, description="Version of the extension; null: the database is down")
    schema_version: int | None = Field(
        default=None, description="Number of the last migration; null: the database is down"
    )
    queue_depth: int | None = Field(
        default=None,
        description="Jobs of all workspaces that are due and not begun, from 0; null: the database is down",
    )
    embedder: str | None = Field(default=None, description="The model in use; null: the database is down")
    llm: str | None = Field(default=None, description="The model in use; null: there is none, or the database is down")


@router.get("/livez", operation_id="livez", summary="Check that the process is alive", include_in_schema=True)
async def livez() -> dict[str, str]:
    """Never touches the database: a slow database must not get the process killed."""
    return {"status": "ok"}


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="Check that the service can answer requests",
    responses=errors.documented(503),
)
async def readyz(request: Request) -> Response:
    """200 while the database answers within 2 s and its schema can be read, else 503. `detail` says why, or that a
    newer schema allows reads only."""
    found = await _look(request)
    body = {"status": found.status} | ({"detail": found.detail} if found.detail else {})
    return JSONResponse(body, _http_status(found))


@router.get(
    "/health",
    operation_id="health_unversioned",
    summary="Get the health of the service",
    response_model=HealthResponse,
    include_in_schema=False,
)
@router.get(
    "/v1/health",
    operation_id="health",
    summary="Get the health of the service",
    response_model=HealthResponse,
    responses={503: {}},
)
async def health(request: Request) -> Response:
    """Versions, models and the length of the queue; 503 while the database does not answer within 2 s, or has a schema
    that this version cannot serve. Needs no key."""
    found = await _look(request)
    return JSONResponse(found.model_dump(), _http_status(found))


@router.get("/metrics", operation_id="metrics", summary="Prometheus metrics", responses=errors.documented(401, 403))
async def metrics(request: Request, caller: Annotated[Caller, Depends(needs(Right.METRICS))]) -> Response:
    """In the text format of Prometheus; needs the right `metrics`. No workspace and no user is a label."""
    res: Resources = request.app.state.resources
    with suppress(ServiceError):  # the counters of this process are served whatever the database does
        async with res.db.read() as session:
            WORKING_BYTES.set(await working.size_bytes(session))
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


def _http_status(found: HealthResponse) -> int:
    return 200 if found.status == "ok" else 503


async def _look(request: Request) -> HealthResponse:
    res: Resources = request.app.state.resources
    try:
        found = await asyncio.wait_for(readiness.check(res.db), READY_TIMEOUT_S)
    except SchemaMismatch as exc:
        return HealthResponse(status="unavailable", version=__version__, database="up", detail=exc.detail)
    except (ServiceError, TimeoutError):
        return HealthResponse(status="unavailable", version=__version__, database="down")
    return HealthResponse(
        status="ok",
        detail=res.db.write_refusal,
        version=__version__,
        database="up",
        postgres=found.postgres,
        pgvector=found.pgvector,
        schema_version=found.revision,
        queue_depth=found.queue_depth,
        embedder=res.embedder.model,
        llm=res.llm.model if res.llm else None,
    )
