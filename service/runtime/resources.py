"""Resources of requests and jobs: database, providers, clock, settings. `opening.py` opens them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import UUID

from service.domain.access import NO_WALL, Wall
from service.domain.errors import EmbeddingError
from service.domain.moments import Clock, system_clock
from service.domain.scope import ScopeSummary
from service.domain.text import CleanText
from service.kit import deadline
from service.kit.deadline import NEVER, Deadline
from service.kit.fair_gate import RuleThreads
from service.kit.settings import Settings
from service.postgres.engine import Database
from service.postgres.replicas import Replicas, RequestPosition
from service.postgres.scopes import ScopeLocks
from service.providers.budget import Budget
from service.providers.protocols import Llm, Vector
from service.queue.wakeup import Wakeup
from service.runtime.embedding import ActiveEmbedder, CachedEmbedder
from service.runtime.statements.caches import DeferredEntries, VectorTable

ScopeKey = tuple[str, str, int, Wall]
"""A part of a scope as SQL, its values, the most rows to count, and the wall."""


class CachedSummary(NamedTuple):
    """Facts about a part of a scope, kept until a moment of the monotonic clock. `read_at`: the position of the WAL
    that was visible."""

    kept_until: float
    read_at: int
    summary: ScopeSummary


@dataclass(slots=True)
class ModelStatus:
    """The result of the last call of the language model."""

    result: str = "no answer yet"


@dataclass(frozen=True, slots=True)
class Context:
    """The context of one request, job or item of a batch. `deferred`: cache entries for its transaction, None if each
    is written at once. `background`: nobody waits for it, so only the hard limits of a day apply. `position`: where it
    may read besides the primary, None if nowhere."""

    wall: Wall
    budget: Budget = field(default_factory=Budget)
    deadline: Deadline = NEVER
    deferred: DeferredEntries | None = None
    background: bool = False
    position: RequestPosition | None = None

    @property
    def wanted_position(self) -> int:
        """What its reads must see, by its position in the WAL."""
        return 0 if self.position is None else self.position.wanted


@dataclass(frozen=True, slots=True)
class Resources:
    """The shared resources of a process. `llm` is None without a key, and the rules are used. `embedder` made the
    vectors of `generation`; `active` knows which are in use now, None if that never changes (tests). Each request and
    job has a view (`within`), whose database and embedder respect its wall. `generic_requests`: the mean vector of
    requests for nothing in particular, by embedder."""

    db: Database
    embedder: CachedEmbedder
    generation: int
    llm: Llm | None
    settings: Settings
    wakeup: Wakeup
    clock: Clock = system_clock
    rules: RuleThreads = field(default_factory=RuleThreads)
    locks: ScopeLocks = field(default_factory=ScopeLocks)
    scope_summaries: dict[ScopeKey, CachedSummary] = field(default_factory=dict)
    generic_requests: dict[str, Vector] = field(default_factory=dict)
    active: ActiveEmbedder | None = None
    replicas: Replicas | None = None
    model_status: ModelStatus = field(default_factory=ModelStatus)
    context: Context = Context(NO_WALL)

    def within(self, context: Context) -> Resources:
        """A view of these resources for one request, job or item of a batch."""
        db = self.db.within(context.wall, context.deadline, context.position)
        return replace(self, context=context, db=db, embedder=_within(self.embedder, context, db))

    def without_access(self) -> Resources:
        """A view without transactions until `within` gives it a wall: for objects that outlive a request."""
        db = self.db.within(None)
        return replace(self, db=db, embedder=_within(self.embedder, self.context, db))

    def with_deferred_caches(self) -> Resources:
        """A view for a write, whose new cache entries are written in its transaction."""
        if self.context.deferred is not None:
            return self
        return self.within(replace(self.context, deferred=DeferredEntries()))

    @asynccontextmanager
    async def until(self, moment: float | None) -> AsyncIterator[Resources]:
        """A view for an item of a batch, and its deadline: see `deadline.ends_at`."""
        async with deadline.ends_at(moment) as limit:
            yield self.within(replace(self.context, deadline=limit))

    async def embed_now(self, workspace_id: UUID, text: CleanText) -> Vector | None:
        """The vector of a short text; None while the embedder is unavailable: a job makes it later."""
        try:
            return (await self.embedder.embed(workspace_id, [text]))[0]
        except EmbeddingError:
            return None

    async def embed_query_now(self, workspace_id: UUID, query: CleanText) -> Vector | None:
        """The vector of a query; None while the embedder is unavailable."""
        try:
            return await self.embedder.embed_query(workspace_id, query)
        except EmbeddingError:
            return None

    def latest(self) -> Resources:
        """These resources with the vector generation that is active now. Requests keep the one they started with."""
        if self.active is None or self.active.now.generation.number == self.generation:
            return self
        now = self.active.now
        embedder = _within(now.embedder, self.context, self.db)
        return replace(self, embedder=embedder, generation=now.generation.number)

    def of_workspace(self, overrides: dict[str, Any]) -> Resources:
        """These resources with a workspace's own settings."""
        return replace(self, settings=self.settings.for_workspace(overrides)) if overrides else self


def _within(embedder: CachedEmbedder, context: Context, db: Database) -> CachedEmbedder:
    return embedder.within(context.wall.own_name(""), context.budget, VectorTable(db, context.deferred))
