"""Budgets of requests of keys and workspaces, over all processes.

The buckets are rows in Postgres. This process takes tokens for a second ahead and spends them here, so a busy key costs
one short transaction a second, and a key over its budget none until there are tokens again.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from starlette.types import Scope

from service.access.statements import budgets
from service.access.statements.budgets import TokenBucket
from service.domain.access import Caller
from service.domain.errors import RateLimited, SchemaMismatch
from service.domain.model_budget import lower
from service.kit.settings import GRANTED, Settings
from service.postgres.engine import Database

AHEAD_S = 1.0
"""The time for which tokens are taken in advance, at the pace of the last second. Longer would cost fewer statements,
but leave more with idle processes."""

DENIED_S = (0.1, 1.0)
"""The shortest and longest time for which a key over its budget is refused without a look-up."""

BURST_S = 10.0
"""The budget of this many seconds may be spent at once: clients work in bursts."""

REMEMBERED = 10_000

Cost = tuple[TokenBucket, float]


@dataclass(slots=True)
class Purse:
    """This process's tokens of one bucket. `left`: those in the bucket at `seen_at`. `asked`: the demand since then."""

    tokens: float = 0.0
    left: float = 0.0
    seen_at: float = 0.0
    asked: float = 0.0
    denied_until: float = 0.0

    def to_take(self, bucket: TokenBucket, needed: float, now: float) -> float:
        """The tokens that are missing or will be needed soon."""
        pace = self.asked / max(now - self.seen_at, 0.001)
        return needed - self.tokens + min(pace, bucket.per_s) * AHEAD_S


@dataclass(slots=True)
class Budgets:
    """The tokens that this process has taken from each bucket. Not thread-safe."""

    database: Database
    clock: Callable[[], float] = time.monotonic
    _purses: OrderedDict[TokenBucket, Purse] = field(default_factory=OrderedDict)
    _locks: dict[UUID, asyncio.Lock] = field(default_factory=dict)

    async def spend(self, scope: Scope, workspace_id: UUID, costs: Sequence[Cost]) -> None:
        """Takes all the costs or none; raises RateLimited. The answer shows what is left (`rate_headers`)."""
        for bucket, count in costs:
            purse = self._purse(bucket)
            purse.asked += count
            if purse.denied_until > self.clock() and purse.tokens < _needed(bucket, count):
                raise self._refusal(scope, bucket, purse, count)
        if any(self._purse(each).tokens < _needed(each, count) for each, count in costs):
            await self._take(workspace_id, costs)
        for bucket, count in costs:
            purse = self._purse(bucket)
            if purse.tokens < _needed(bucket, count):
                wait_s = (_needed(bucket, count) - purse.tokens - purse.left) / bucket.per_s
                purse.denied_until = self.clock() + min(max(wait_s, DENIED_S[0]), DENIED_S[1])
                raise self._refusal(scope, bucket, purse, count)
        for bucket, count in costs:
            self._purse(bucket).tokens -= count
        scope["state"].setdefault("budgets", []).extend((each, self._purse(each)) for each, _ in costs)

    async def _take(self, workspace_id: UUID, costs: Sequence[Cost]) -> None:
        """Refills purses from Postgres; one task per workspace at a time."""
        lock = self._locks.setdefault(workspace_id, asyncio.Lock())
        async with lock:
            now = self.clock()
            short = [
                (each, count)
                for each, count in costs
                if self._purse(each).tokens < _needed(each, count) and self._purse(each).denied_until <= now
            ]
            wanted = [(each, self._purse(each).to_take(each, _needed(each, count), now)) for each, count in short]
            if not wanted:
                return
            try:
                grants = await budgets.take(self.database, workspace_id, wanted)
            except SchemaMismatch:  # reads go on, unmetered
                for bucket, count in short:
                    self._purse(bucket).tokens += count
                return
            for (bucket, _), grant in zip(wanted, grants, strict=True):
                purse = self._purse(bucket)
                purse.tokens, purse.left = purse.tokens + grant.taken, grant.left
                purse.seen_at, purse.asked = now, 0.0
        if len(self._locks) > REMEMBERED:
            self._locks = {each: lock for each, lock in self._locks.items() if lock.locked()}

    def _purse(self, bucket: TokenBucket) -> Purse:
        purse = self._purses.get(bucket)
        if purse is None:
            purse = self._purses[bucket] = Purse()
            if len(self._purses) > REMEMBERED:
                self._purses.popitem(last=False)
        else:
            self._purses.move_to_end(bucket)
        return purse

    def _refusal(self, scope: Scope, bucket: TokenBucket, purse: Purse, count: float) -> RateLimited:
        scope["state"].setdefault("budgets", []).append((bucket, purse))
        wait_s = (_needed(bucket, count) - purse.tokens - purse.left) / bucket.per_s
        return RateLimited(
            f"The budget {bucket.unit} is used up: {bucket.per_s:g} a second, {bucket.burst:g} at once.",
            retry_after_s=math.ceil(wait_s),
        )


def _needed(bucket: TokenBucket, count: float) -> float:
    """A request that costs more than the whole bucket passes if it is full, and leaves a debt."""
    return min(count, bucket.burst)


def of_request(settings: Settings, caller: Caller) -> list[Cost]:
    """The costs of a request, for every budget in force. The workspace's own settings apply only to its keys."""
    own: Mapping[str, Any] = caller.settings
    granted: Mapping[str, Any] = own.get(GRANTED) or {}
    costs = []
    for subject, name in ((caller.key_id, "key"), (caller.workspace_id, "workspace")):
        setting = f"{name}_requests_per_s"
        per_s = settings.value(setting)
        if name == "key":
            per_s = lower(own.get(setting), granted.get(setting, per_s)) or 0.0
        if per_s > 0:
            costs.append((TokenBucket(subject, f"{name}-requests", per_s, max(1.0, per_s * BURST_S)), 1.0))
    return costs


def rate_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """RateLimit-Policy (quota and window in seconds) and RateLimit (what remains, seconds until it is fully restored)
    of the budgets that the request spent from, as the IETF's draft has them."""
    spent: list[tuple[TokenBucket, Purse]] = scope["state"].get("budgets", [])
    if not spent:
        return []
    policies, states = [], []
    for bucket, purse in spent:
        remaining = max(0, min(bucket.burst, purse.tokens + purse.left))
        policies.append(f'"{bucket.unit}";q={bucket.burst:.0f};w={math.ceil(bucket.burst / bucket.per_s)}')
        states.append(
            f'"{bucket.unit}";r={math.floor(remaining)};t={math.ceil((bucket.burst - remaining) / bucket.per_s)}'
        )
    return [(b"ratelimit-policy", ", ".join(policies).encode()), (b"ratelimit", ", ".join(states).encode())]
