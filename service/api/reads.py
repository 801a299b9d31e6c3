"""Dependencies that record what a read found: in the audit, as the workspace's level says, and as use of memories."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Protocol
from uuid import UUID

from fastapi import Depends, Query, Request

from service.api.deps import ResourcesOf, session_of
from service.db.writes import AuditEntry, thresholds
from service.domain.access import Caller
from service.domain.audit import Subject
from service.domain.conversation import Turn
from service.domain.entity import Entity
from service.domain.memory import Memory
from service.domain.procedure import Strategy
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.domain.timeline import TimelineEvent
from service.memory.write_behind import ReadLog, UseCounter
from service.resources import Resources
from service.retrieval.stopwatch import elapsed_ms

LEVELS = frozenset({"reads", "verbose"})


class AuditRead:
    """Adds what a read found to the audit; does nothing below the level "reads". The route must depend on the caller
    and the resources."""

    def __init__(self, request: Request) -> None:
        self._request, self._began = request, time.perf_counter()

    def __call__(
        self,
        route: str,
        scope: Scope,
        found: Sequence[Memory | Turn | Strategy | Entity | TimelineEvent],
        *,
        query: str | None = None,
        kind: Subject = "semantic",
        channels: Sequence[str] = (),
        **parameters: Any,
    ) -> None:
        request = self._request
        caller: Caller = request.state.caller
        res: Resources = request.state.resources
        if res.settings.audit_level not in LEVELS:
            return
        log: ReadLog = request.app.state.reads
        log.add(
            AuditEntry(
                operation="retrieve",
                memory_type=kind,
                scope=scope,
                affected_ids=tuple(each.id for each in found),
                request_id=request.state.request_id,
                api_key_id=caller.key_id,
                session_id=session_of(request),
                config_snapshot=thresholds(res.settings),
                metadata=_metadata(route, scope, found, res, query, parameters),
                target_channels=tuple(dict.fromkeys((scope.channel, *channels, GLOBAL_CHANNEL))),
                query_text=query,
                result_count=len(found),
                latency_ms=elapsed_ms(self._began),
            )
        )


async def _audit_read(request: Request) -> AuditRead:
    return AuditRead(request)


def _metadata(
    route: str,
    scope: Scope,
    found: Sequence[Memory | Turn | Strategy | Entity | TimelineEvent],
    res: Resources,
    query: str | None,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"route": route}
    verbose = res.settings.audit_level == "verbose"
    if elsewhere := [str(each.id) for each in found if _channel(each) != scope.channel]:
        metadata["cross_channel_ids"] = elsewhere
    if verbose:
        metadata["asked"] = {name: value for name, value in parameters.items() if value is not None}
    if verbose or query is not None:  # the erasure of an agent or a run finds its queries by this
        metadata["scope"] = {"agent_id": scope.agent_id, "run_id": scope.run_id}
    return metadata


def _channel(found: Memory | Turn | Strategy | Entity | TimelineEvent) -> str:
    return found.channel if isinstance(found, Entity | TimelineEvent) else found.scope.channel


class Reinforce(Protocol):
    """Counts memories, and entities by id, as used."""

    def __call__(self, found: Sequence[Memory], entities: Iterable[UUID] = ()) -> None: ...


async def _reinforce(request: Request) -> Reinforce:
    """Returns a function that counts memories as used, after the request and outside its transaction
    (docs/decisions/029-reinforcement.md)."""

    def reinforce(found: Sequence[Memory], entities: Iterable[UUID] = ()) -> None:
        caller: Caller = request.state.caller
        res: Resources = request.state.resources
        if res.settings.reinforce:
            uses: UseCounter = request.app.state.uses
            uses.add(caller.workspace_id, [each.id for each in found], res.clock(), entities=entities)

    return reinforce


async def _counts(
    res: ResourcesOf,
    reinforce: Annotated[bool, Query(description="Count what is shown as used; false for previews")] = True,
) -> bool:
    return reinforce and res.settings.reinforce


CountsOf = Annotated[bool, Depends(_counts)]
"""Whether this read counts as a use."""
ReinforceOf = Annotated[Reinforce, Depends(_reinforce)]
NoteOf = Annotated[AuditRead, Depends(_audit_read)]
