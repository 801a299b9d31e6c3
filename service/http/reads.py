"""Shared by reads: their time, the model budget, which writes have too, and dependencies that record results in the
audit and as use of memories.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any, Protocol
from uuid import UUID

from fastapi import Depends, Query, Request, Response
from pydantic_core import to_json

from service.domain.access import Caller
from service.domain.errors import DeadlineExceeded
from service.domain.memory import LeanMemory
from service.domain.moments import elapsed_ms
from service.domain.query import Detail
from service.domain.request import Operation, Subject
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.http.deps import ResourcesOf, session_of
from service.providers.budget import Budget, Limits
from service.runtime.background import ReadLog, UseCounter
from service.runtime.resources import Resources
from service.runtime.statements.audit import AuditEntry, thresholds

DETAIL = "lean: the fields that callers act on; full: every field of each memory or turn"
DetailOf = Annotated[Detail, Query(description=DETAIL)]


def send_json(content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """A response that is serialised once, without its model: building and checking that took longer than reading the
    rows."""
    return Response(to_json(content, inf_nan_mode="null"), headers=headers, media_type="application/json")


MODELS_SHARE = 0.85
"""Share of a request's time for model calls: their results still have to be embedded and written."""

MODEL_CALLS, MODEL_TOKENS = 32, 60_000
"""What one request may use of the language model: a batch of a hundred texts needs a tenth of it."""

TECHNIQUES_SHARE = 0.6
"""Share of a search's time for the language model; after that the query is embedded as it is."""


def with_budget(res: Resources, *, within_s: float | None = None) -> Resources:
    """A view with a budget for the model calls, tokens and seconds of a request, shared by the items of a batch.
    `within_s`: a time shorter than the request's deadline."""
    settings = res.settings
    deadline_s, overall_deadline_s = settings.server.request_deadline_s * MODELS_SHARE, None
    if within_s is not None:
        deadline_s, overall_deadline_s = min(deadline_s, within_s * TECHNIQUES_SHARE), within_s * MODELS_SHARE
    limits = Limits(MODEL_CALLS, MODEL_TOKENS, deadline_s, overall_deadline_s)
    return res.within(replace(res.context, budget=Budget(limits)))


DEADLINE_S = 15.0
"""The longest that a whole search or recall may take, models included; then 503."""


@asynccontextmanager
async def in_time(res: Resources) -> AsyncIterator[Resources]:
    """A view with the budget and the deadline of a search: models are skipped once their share of the time is used up.
    Raises DeadlineExceeded after the deadline; the running statement is cancelled."""
    try:
        async with asyncio.timeout(DEADLINE_S) as limit:
            yield with_budget(res, within_s=DEADLINE_S)
    except TimeoutError:
        if not limit.expired():
            raise
        detail = f"The search took longer than {DEADLINE_S:g} s and was cancelled."
        raise DeadlineExceeded(detail, retry_after_s=1.0) from None


# -- recording of results ----------------------------------------------------------------------------------------------

LEVELS = frozenset({"reads", "verbose"})


class Result(Protocol):
    """A memory, turn, strategy, entity or event, as far as the audit names it."""

    @property
    def id(self) -> UUID: ...

    @property
    def channel(self) -> str: ...


class AuditRead:
    """Audits the results of a read or a use of working memory, unless the level is below "reads". The route must depend
    on the caller and the resources."""

    def __init__(self, request: Request) -> None:
        self._request, self._began = request, time.perf_counter()

    def __call__(
        self,
        route: str,
        scope: Scope,
        results: Sequence[Result],
        *,
        query: str | None = None,
        subject: Subject = "semantic",
        channels: Sequence[str] = (),
        operation: Operation = "retrieve",
        working_session_id: UUID | None = None,
        **parameters: Any,
    ) -> None:
        request = self._request
        caller: Caller = request.state.caller
        res: Resources = request.state.resources
        if res.settings.history.audit_level not in LEVELS:
            return
        log: ReadLog = request.app.state.reads
        searched = (scope.channel, *channels, GLOBAL_CHANNEL)
        log.add(
            AuditEntry(
                operation=operation,
                memory_type=subject,
                scope=scope,
                affected_ids=(working_session_id,) if working_session_id else tuple(result.id for result in results),
                request_id=request.state.request_id,
                api_key_id=caller.key_id,
                session_id=session_of(request),
                config_snapshot=thresholds(res.settings, None if query is None else "retrieve"),
                metadata=_metadata(route, scope, results, res, query, parameters),
                target_channels=() if scope.every_channel else tuple(dict.fromkeys(searched)),
                query_text=query,
                result_count=len(results),
                latency_ms=elapsed_ms(self._began),
            )
        )


async def _audit_read(request: Request) -> AuditRead:
    return AuditRead(request)


def _metadata(
    route: str,
    scope: Scope,
    results: Sequence[Result],
    res: Resources,
    query: str | None,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"route": route}
    verbose = res.settings.history.audit_level == "verbose"
    if elsewhere := [str(result.id) for result in results if result.channel != scope.channel]:
        metadata["cross_channel_ids"] = elsewhere
    if verbose:
        metadata["asked"] = {name: value for name, value in parameters.items() if value is not None}
    if verbose or query is not None:  # erasing an agent or a run finds its queries by this
        metadata["scope"] = {"agent_id": scope.agent_id, "run_id": scope.run_id}
    return metadata


class CountUse:
    """Counts memories, and entities by id, as used: after the request and outside its transaction
    (docs/decisions/059-ageing.md)."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def __call__(self, memories: Sequence[LeanMemory], entities: Iterable[UUID] = ()) -> None:
        caller: Caller = self._request.state.caller
        res: Resources = self._request.state.resources
        if res.settings.search.reinforce:
            uses: UseCounter = self._request.app.state.uses
            uses.add(caller.workspace_id, [memory.id for memory in memories], res.clock(), entities=entities)


async def _count_use(request: Request) -> CountUse:
    return CountUse(request)


async def _counts(
    res: ResourcesOf,
    reinforce: Annotated[bool, Query(description="Count the results as used; false for previews")] = True,
) -> bool:
    return reinforce and res.settings.search.reinforce


CountsOf = Annotated[bool, Depends(_counts)]
"""Whether the read counts as use."""
CountUseOf = Annotated[CountUse, Depends(_count_use)]
AuditReadOf = Annotated[AuditRead, Depends(_audit_read)]
