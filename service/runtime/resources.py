"""What requests and jobs work with: database, providers, clock, settings. `opening.py` opens it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from service.domain.access import Wall
from service.domain.moments import Clock, system_clock
from service.domain.scope import ScopeSummary
from service.kit.rule_threads import RuleThreads
from service.kit.settings import Settings
from service.postgres.engine import Database
from service.postgres.scopes import ScopeLocks
from service.providers.caches import CachedEmbedder
from service.providers.protocols import Llm, Vector
from service.providers.reranker import Reranker
from service.queue.queue import Wakeup
from service.runtime.embedding import ActiveEmbedder

ScopeKey = tuple[str, str, int, Wall]
"""A part of a scope as SQL, its values, up to how many rows are counted, and the wall."""
"""A scope with its channels, and up to how many rows it is counted. What is remembered of it holds until a moment of
the monotonic clock."""


@dataclass(slots=True)
class ModelStatus:
    """What the language model did when it was last asked."""

    said: str = "no answer yet"


@dataclass(frozen=True, slots=True)
class Resources:
    """Everything that waits or remembers. `llm` is None without a key: the rules do its work then. `embedder` made the
    vectors of `generation`; `active` knows which are in use now, None where that never changes (tests)."""

    db: Database
    embedder: CachedEmbedder
    generation: int
    llm: Llm | None
    settings: Settings
    wakeup: Wakeup
    clock: Clock = system_clock
    rules: RuleThreads = field(default_factory=RuleThreads)
    locks: ScopeLocks = field(default_factory=ScopeLocks)
    scope_summaries: dict[ScopeKey, tuple[float, ScopeSummary]] = field(default_factory=dict)
    common: dict[str, Vector] = field(default_factory=dict)
    reranker: Reranker | None = None
    active: ActiveEmbedder | None = None
    model_status: ModelStatus = field(default_factory=ModelStatus)

    def latest(self) -> Resources:
        """These resources with the vector generation that is active now. Requests keep the one they started with."""
        if self.active is None or self.active.now.generation.number == self.generation:
            return self
        now = self.active.now
        return replace(self, embedder=now.embedder, generation=now.generation.number)

    def of_workspace(self, overrides: dict[str, Any]) -> Resources:
        """These resources with a workspace's own settings."""
        return replace(self, settings=self.settings.for_workspace(overrides)) if overrides else self
