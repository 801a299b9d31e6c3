"""Checks the consistency of the database: every check of sql/doctor.sql, in one snapshot.

The transaction is read-only and REPEATABLE READ, so a running service neither waits for it nor is disturbed by it. It
runs as the owner of the schema, for whom row-level security hides nothing: under any other role a broken row could
remain hidden.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]

from service.domain.errors import StoreUnavailable
from service.postgres import readiness
from service.postgres.roles import MIGRATE_LOGIN, OWNER, URL_VARIABLES

SCRIPT = Path(__file__).parent / "sql" / "doctor.sql"
CHECK = re.compile(r"^-- check: (?P<name>[a-z-]+) \| (?P<rule>.+)\n(?P<query>(?:.*\n)*?.*;)$", re.MULTILINE)

LOCK_WAIT_S = 30
"""Only a migration, or the making of a partition, locks a table against reading."""

NOT_THE_OWNER = (
    f"The database login {{login}} may not become {OWNER}, so row-level security would hide rows from the doctor: set "
    f"{URL_VARIABLES[OWNER]} to the login {MIGRATE_LOGIN}."
)


@dataclass(frozen=True, slots=True)
class Invariant:
    """An invariant. `rule`: what must hold; `query`: the rows that break it, as workspace_id and id."""

    name: str
    rule: str
    query: str


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """A row that breaks a rule. `workspace_id`: None for one of the whole database."""

    workspace_id: UUID | None
    id: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check. `broken`: how many rows break the rule; `examples`: some of them; `took_s`: seconds."""

    check: Invariant
    broken: int
    examples: tuple[BrokenRow, ...]
    took_s: float


def checks() -> list[Invariant]:
    """All checks, in the order of the script."""
    invariants = [
        Invariant(match["name"], match["rule"], match["query"]) for match in CHECK.finditer(SCRIPT.read_text())
    ]
    assert len({invariant.name for invariant in invariants}) == len(invariants), "two checks have one name"
    return invariants


async def examine(url: str, *, examples: int) -> list[CheckResult]:
    """What each check found, with at most `examples` rows of each. `url`: of a login that may become the owner of the
    schema, on a primary or a standby. Raises StoreUnavailable for another login or no database, SchemaMismatch for a
    schema of another version."""
    async with readiness.connected(url, application_name="loxodon doctor") as connection:
        await _become_owner(connection)
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'")
            await readiness.demand_revision(connection)
            return [await _run(connection, check, examples) for check in checks()]


def is_whole(results: Sequence[CheckResult]) -> bool:
    """Whether nothing is broken."""
    return not any(result.broken for result in results)


async def _become_owner(connection: asyncpg.Connection[Any]) -> None:
    try:
        await connection.execute(f"SET ROLE {OWNER}")
    except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidParameterValueError) as exc:
        login = await connection.fetchval("SELECT session_user")
        raise StoreUnavailable(NOT_THE_OWNER.format(login=login)) from exc


async def _run(connection: asyncpg.Connection[Any], check: Invariant, examples: int) -> CheckResult:
    began = time.monotonic()
    counted = f"SELECT count(*) OVER () AS broken, b.* FROM (\n{check.query.rstrip(';')}\n) b LIMIT {max(1, examples)}"  # noqa: S608 - no user input
    rows = await connection.fetch(counted)
    broken = rows[0]["broken"] if rows else 0
    examples_found = tuple(BrokenRow(row["workspace_id"], row["id"]) for row in rows[:examples])
    return CheckResult(check, broken, examples_found, time.monotonic() - began)
