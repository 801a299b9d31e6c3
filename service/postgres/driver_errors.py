"""Converts errors of the driver into ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import asyncpg  # type: ignore[import-untyped]
import sqlalchemy.exc
from sqlalchemy.ext.asyncio import AsyncConnection

from service.domain.errors import Conflict, Forbidden, LockedOut, ServiceError, StoreUnavailable
from service.observability.metrics import DATABASE_ERRORS

DRIVER = "driver"
"""The key under which a connection's information has the driver's connection."""

LOCK_TIMEOUT, QUERY_CANCELLED, DEADLOCK = "55P03", "57014", "40P01"
READ_ONLY, DISK_FULL = "25006", "53100"
LOST = (
    OSError,  # with TimeoutError, ssl.SSLError and all refusals of the network
    EOFError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the protocol ended in the middle of a message
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # it shuts down, has crashed, or is not up yet
    asyncpg.IdleInTransactionSessionTimeoutError,
    sqlalchemy.exc.PendingRollbackError,
    sqlalchemy.exc.ResourceClosedError,
)
"""The errors that the driver and SQLAlchemy raise when a connection is gone or could not be made."""

PASSING_CLASSES = ("40", "53", "57", "58")
"""SQLSTATE classes of errors after which a retry may succeed: transaction rollback, resources, operator intervention,
system error."""

RETRY_AFTER_S = 1.0

LOCKED_OUT = frozenset({"lock_timeout", "deadlock"})
PASSING = {
    LOCK_TIMEOUT: "lock_timeout",
    DEADLOCK: "deadlock",
    QUERY_CANCELLED: "cancelled",
    READ_ONLY: "read_only",
    DISK_FULL: "disk_full",
}
UNAVAILABLE = {
    "unreachable": "The database cannot be reached.",
    "pool_busy": "Every database connection is busy.",
    "lock_timeout": "Another write to this scope takes too long.",
    "deadlock": "Two writes waited for each other and this one gave way.",
    "cancelled": "The database took too long.",
    "read_only": "The database takes no writes: it is read-only.",
    "disk_full": "The database has no disk space left.",
    "other": "The database cannot do this right now.",
}
"""The sentence about a transaction that failed, by the reason in the metrics."""

CLASHES: Mapping[str, Callable[[], Conflict]] = {
    "pk_memory": lambda: Conflict("A memory with this id exists, or existed, in another scope.", field="id"),
    "uq_turn_workspace_id_conversation_id_turn_index": lambda: Conflict(
        "turn_index: the conversation already has a turn at this index.", field="turn_index"
    ),
    "ix_goal_edge_parent": lambda: Conflict("parent_id: it has one that this key cannot see.", field="parent_id"),
    "uq_memory_dedup": lambda: Conflict("The scope already has a memory with this text.", field="content"),
}
"""The error of a request that lost a race at a named constraint."""


@contextmanager
def translated_errors(session: AsyncConnection | None = None, *, walled: bool = False) -> Iterator[None]:
    """Translates errors of the driver within the block, so that no SQL and no parameter leaves this room. `session`: if
    its connection has died, every error counts as a lost connection. `walled`: a refusal may come from the wall."""
    try:
        yield
    except ServiceError:
        raise
    except Exception as error:
        ours = translate(error, session, walled=walled)
        if ours is None:
            raise
        raise ours from error


def violated_constraint(error: asyncpg.PostgresError) -> str:
    """The name of the constraint. Citus adds the number of the shard, and may name it in the message alone."""
    name = error.constraint_name or next(iter(re.findall(r'"(\w+)"', str(error))), "")
    return re.sub(r"_\d{6,}$", "", name)


def translate(error: Exception, session: AsyncConnection | None = None, *, walled: bool = False) -> ServiceError | None:
    """Our error for the driver's; None for a bug."""
    if isinstance(error, sqlalchemy.exc.TimeoutError):
        return unavailable("pool_busy")
    cause = _cause(error)
    if isinstance(cause, asyncpg.UniqueViolationError) and violated_constraint(cause) in CLASHES:
        return CLASHES[violated_constraint(cause)]()
    if isinstance(cause, asyncpg.InsufficientPrivilegeError) and walled:
        return Forbidden("This is outside the part of the workspace that this key can access.")
    state = getattr(cause, "sqlstate", None) or ""
    if state in PASSING:
        return unavailable(PASSING[state])
    if is_lost(error, session):
        return unavailable("unreachable")
    return unavailable("other", state) if state.startswith(PASSING_CLASSES) else None


def _cause(error: Exception) -> BaseException:
    """The driver's error in one of SQLAlchemy's."""
    inner = getattr(error, "orig", None)
    return error if inner is None else inner.__cause__ or inner


def is_lost(error: Exception, session: AsyncConnection | None = None) -> bool:
    """Whether the connection was lost or never made, by the error or by the state of the connection."""
    if isinstance(error, sqlalchemy.exc.DBAPIError) and error.connection_invalidated:
        return True
    cause = _cause(error)
    if isinstance(cause, LOST):  # a cancelled statement leaves its connection open
        return not isinstance(cause, asyncpg.QueryCanceledError)
    if session is None:
        return False
    if session.closed or session.invalidated:
        return True
    raw = session.info.get(DRIVER)
    return raw is not None and raw.is_closed()


def unavailable(reason: str, state: str = "") -> StoreUnavailable:
    """Counts a transaction that the database could not do, and returns its error, which names the SQLSTATE if given."""
    DATABASE_ERRORS.labels(reason).inc()
    kind = LockedOut if reason in LOCKED_OUT else StoreUnavailable
    return kind(f"{UNAVAILABLE[reason]}{f' SQLSTATE {state}.' if state else ''}", retry_after_s=RETRY_AFTER_S)
