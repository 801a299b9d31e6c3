"""SQL conditions, the scopes among them, and the lock of a scope.

A condition is a piece of a WHERE clause: its text and its values. Statements on the hot path are put together from such
pieces and kept per shape: building them from expressions each time cost more than running them. The names of the values
are fixed, so equal pieces in one statement share them.

`readable` filters by the ids that are given; `exact` takes a missing id as NULL, which is what writes and deduplication
compare with. The workspace is an explicit predicate in addition to the policy, so that a partition is chosen early.
`is_talk`: rows of conversations, which have a column `is_run`. A run given without a user means only those of the run,
never a user's session of that name.

A scope that is a union (one of several ids, or shared memories as well) has parts, each with an index of its own. A
statement that reads all of a scope reads `source`, the parts one after the other: with OR between them the planner
gives up index-only scans and the order of an index.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy import TextClause

from service.domain.errors import LockedOut
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.observability.metrics import DATABASE_ERRORS
from service.postgres.template import typed_text


@dataclass(frozen=True, slots=True)
class Condition:
    """A piece of a WHERE clause: `sql` with named parameters, and their values. `parts`: the condition divided, so that
    each row meets one of them; empty for a condition that is no union."""

    sql: str
    values: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[str, ...] = ()

    def __and__(self, other: Condition) -> Condition:
        parts = tuple(f"{part} AND {other.sql}" for part in self.parts)
        return Condition(f"{self.sql} AND {other.sql}", {**self.values, **other.values}, parts)

    @property
    def each(self) -> tuple[Condition, ...]:
        """The parts as conditions; itself where it has none."""
        return tuple(Condition(part, _keep_used(part, self.values)) for part in self.parts) or (self,)

    def source(self, table: str, top: str = "") -> str:
        """The text after FROM for the rows that meet it; further conditions may follow with AND. `table`: its name and
        alias, as in "memory m". `top`: the ORDER BY and LIMIT of the statement, if no conditions follow: each part is
        then read in that order no further than needed."""
        if not self.parts:
            return f"{table} WHERE {self.sql}"
        alias = table.split()[-1]
        union = "\n    UNION ALL ".join(f"(SELECT * FROM {table} WHERE {part} {top})" for part in self.parts)  # noqa: S608 - no user input
        return f"({union}) {alias} WHERE true"

    @property
    def clause(self) -> TextClause:
        """The condition for a Core statement."""
        return typed_text(self.sql).bindparams(**self.values)


def _keep_used(sql: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if f":{name}" in sql}


def by_key(table: str, value: str, *, key: str = "id", more: str = "", most: int = 1) -> str:
    """SQL of the row of the workspace with this key, for LATERAL; of up to `most` rows if the key has further columns.
    The range of one value and the ORDER BY leave the planner only the index of the key. With a join or an equality it
    may choose another, by statistics of a small table, and read the whole workspace for each row."""
    where = f"{table}.workspace_id = :workspace AND {table}.{key} >= {value} AND {table}.{key} <= {value}"
    return f"SELECT * FROM {table} WHERE {where}{more} ORDER BY {table}.{key} LIMIT {most}"  # noqa: S608 - no user input


def by_keys(table: str, values: str) -> str:
    """SQL of the rows of the workspace with these ids (an array), in half the time of a `by_key` for each. OFFSET 0
    keeps conditions outside from choosing another index."""
    where = f"{table}.workspace_id = :workspace AND {table}.id = ANY ({values})"
    return f"SELECT * FROM {table} WHERE {where} ORDER BY {table}.id OFFSET 0"  # noqa: S608 - no user input


def is_valid(alias: str, moment: str = ":now") -> str:
    """Whether a row is valid at a moment: in the half-open [t_valid, t_invalid), without a bound that is NULL."""
    begun = f"({alias}.t_valid IS NULL OR {alias}.t_valid <= {moment})"
    return f"{begun} AND ({alias}.t_invalid IS NULL OR {alias}.t_invalid > {moment})"


# -- the conditions of a scope -----------------------------------------------------------------------------------------


SHARED = "{alias}.user_id IS NULL AND {alias}.agent_id IS NULL AND {alias}.run_id IS NULL"
"""Rows that belong to the whole workspace; the ix_..._shared indexes have just these."""


def readable(alias: str, scope: Scope, channels: Sequence[str] = (), *, is_talk: bool = False) -> Condition:
    """Rows a read of this scope may see: given ids equal, channel the active one or `_global`, or one of
    `channels`; one of the ids where the scope asks for any; shared rows where it includes them."""
    where, seen = _workspace(alias, scope), seen_channels(alias, scope, channels)
    given = _given(alias, scope, is_talk=is_talk)
    owned = _any_of(alias, given.values, is_talk=is_talk) if scope.match == "any" else (given.sql,)
    parts = owned if scope.has_owner or not scope.include_shared else ()
    if scope.include_shared:
        parts = (*parts, SHARED.format(alias=alias))
    values = {**where.values, **given.values, **seen.values}
    each = tuple(f"{where.sql} AND {part} AND {seen.sql}" for part in parts)
    if len(each) == 1:
        return Condition(each[0], values)
    either = " OR ".join(f"({part})" for part in parts)
    return Condition(f"{where.sql} AND ({either}) AND {seen.sql}", values, each)


def _any_of(alias: str, given: Mapping[str, Any], *, is_talk: bool) -> tuple[str, ...]:
    """One condition for each id; a row that meets several is only in the first of them."""
    names = list(given)
    others = [f"{alias}.{name} IS DISTINCT FROM :{name}" for name in names]
    return tuple(
        " AND ".join((_equal(alias, name, is_run=is_talk), *others[:index])) for index, name in enumerate(names)
    ) or ("true",)


def seen_channels(alias: str, scope: Scope, channels: Sequence[str] = ()) -> Condition:
    """Rows of the channels that a read of this scope looks at."""
    if channels:
        seen = sorted({*channels, scope.channel, GLOBAL_CHANNEL})
        return Condition(f"{alias}.channel = ANY (CAST(:channels AS text[]))", {"channels": seen})
    if scope.every_channel:
        return Condition("true")
    if scope.channel == GLOBAL_CHANNEL:
        return Condition(f"{alias}.channel = :channel", {"channel": GLOBAL_CHANNEL})
    return Condition(
        f"{alias}.channel IN (:channel, :global_channel)", {"channel": scope.channel, "global_channel": GLOBAL_CHANNEL}
    )


def of_row(row: Any) -> Scope:
    """The scope in the columns of a row."""
    return Scope(row.workspace_id, row.user_id, row.agent_id, row.run_id, row.channel)


def of_talk(row: Any) -> Scope:
    """The scope in the columns of a row of a conversation."""
    return replace(of_row(row), is_run=row.is_run)


def exact(alias: str, scope: Scope) -> Condition:
    """Rows of just this scope and channel: a missing id means NULL."""
    rows = _workspace(alias, scope)
    for name in ("user_id", "agent_id", "run_id"):
        value = getattr(scope, name)
        column = f"{alias}.{name}"
        rows &= Condition(f"{column} IS NULL") if value is None else Condition(f"{column} = :{name}", {name: value})
    return rows & Condition(f"{alias}.channel = :channel", {"channel": scope.channel})


def deletable(alias: str, scope: Scope, channel: str | None, *, is_talk: bool = False) -> Condition:
    """Everything that belongs to a scope and nothing else, for deleting: given ids equal (without any id: shared rows),
    just the given channel, or every channel when none is given."""
    rows = with_ids(alias, scope, channel, is_talk=is_talk)
    return rows if scope.has_owner else rows & Condition(SHARED.format(alias=alias))


def with_ids(alias: str, scope: Scope, channel: str | None, *, is_talk: bool = False) -> Condition:
    """Rows that have every given id, and the channel if one is given; of the whole workspace when none is."""
    rows = _workspace(alias, scope) & _given(alias, scope, is_talk=is_talk)
    return rows & Condition(f"{alias}.channel = :channel", {"channel": channel}) if channel is not None else rows


def _workspace(alias: str, scope: Scope) -> Condition:
    return Condition(f"{alias}.workspace_id = :workspace", {"workspace": scope.workspace_id})


def _given(alias: str, scope: Scope, *, is_talk: bool) -> Condition:
    given = {name: getattr(scope, name) for name in ("user_id", "agent_id", "run_id")}
    present = {name: value for name, value in given.items() if value is not None}
    is_run = is_talk and scope.user_id is None
    return Condition(" AND ".join(_equal(alias, name, is_run=is_run) for name in present) or "true", present)


def _equal(alias: str, name: str, *, is_run: bool) -> str:
    equal = f"{alias}.{name} = :{name}"
    return f"{equal} AND {alias}.is_run" if is_run and name == "run_id" else equal


def without_expired_memories(alias: str, now: datetime) -> Condition:
    """Turns from which no expired memory was read: the daily clean-up has still to withdraw what they say. Read once
    per statement, by ix_memory_expires."""
    expired = """SELECT s.turn_id FROM (
            SELECT id FROM memory WHERE workspace_id = :workspace AND expires_at <= :now ORDER BY expires_at
        ) m CROSS JOIN LATERAL (
            SELECT turn_id FROM memory_source o WHERE o.workspace_id = :workspace AND o.memory_id >= m.id
                AND o.memory_id <= m.id ORDER BY o.memory_id
        ) s"""
    return Condition(f"{alias}.id NOT IN ({expired})", {"now": now})  # hashed once, also for many


# -- the lock of a scope --------------------------------------------------------------------------------------------


def lock(scope: Scope) -> str:
    """The statement that waits for the scope's advisory lock, held until the transaction ends; for Database.begin.

    A statement of its own: a snapshot taken with the lock would be older than the lock and not see what was committed
    while waiting. It stands in a simple-protocol string, which takes no parameters, so the name, which is the caller's
    text, goes as hexadecimal digits. See docs/decisions/006-scope-lock.md.
    """
    name = scope.lock_name.encode().hex()
    return f"SELECT pg_advisory_xact_lock(hashtextextended(convert_from(decode('{name}', 'hex'), 'UTF8'), 0))"


class ScopeLocks:
    """One asyncio lock per scope, in front of the one in the database: at most one of the pool's connections waits for
    a busy scope. Without it 64 adds to one scope made another tenant wait 2,885 ms instead of 5."""

    def __init__(self, timeout_s: float = 20.0) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # only those that are waited for
        self._timeout_s = timeout_s

    @asynccontextmanager
    async def hold(self, scope: Scope) -> AsyncIterator[None]:
        """Holds the scope's lock in this process; LockedOut when it does not come in time."""
        lock = self._locks.setdefault(scope.lock_name, asyncio.Lock())
        try:
            async with asyncio.timeout(self._timeout_s):
                await lock.acquire()
        except TimeoutError as exc:
            DATABASE_ERRORS.labels("lock_timeout").inc()
            raise LockedOut("Another write to this scope takes too long.", retry_after_s=1.0) from exc
        try:
            yield
        finally:
            lock.release()
