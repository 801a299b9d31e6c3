"""What a statement does in Postgres, read from its plan."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import event

from service.postgres.engine import Session, driver, is_citus

STEP = re.compile(r"(?: on (?P<table>\w+?)(?:_\d{6})?\b.*?)?\(actual rows=(?P<rows>[\d.]+) loops=(?P<loops>\d+)\)")
"""A step that ran, of its table; a shard of Citus has a number."""

REMOVED = re.compile(r"Rows Removed by [\w ]+: (\d+)")


@dataclass(slots=True)
class PlanStep:
    """A step of a plan: the table that it scans, if any, and the rows of each loop, also those that were not kept."""

    table: str
    rows: float
    loops: int


async def kept_plan(session: Session, reading: Awaitable[Any]) -> list[PlanStep]:
    """The plan that is kept of the last statement of `reading`, as it ran for the same values, from the top."""
    raw, sent = await driver(session), list[tuple[str, Sequence[Any]]]()

    def note(_connection: Any, _cursor: Any, sql: str, values: Sequence[Any], *_: Any) -> None:
        sent.append((sql, values))

    event.listen(session.engine.sync_engine, "before_cursor_execute", note)
    with raw.query_logger(lambda query: sent.append((query.query, query.args))):  # of what is sent past SQLAlchemy
        await reading
        await asyncio.sleep(0)  # the driver calls it back later
    event.remove(session.engine.sync_engine, "before_cursor_execute", note)
    sql, values = sent[-1]
    types = ", ".join(each.name for each in (await raw.prepare(sql)).get_parameters())
    if not is_citus(session):  # which keeps no plan for any values
        await raw.execute("SET LOCAL plan_cache_mode = force_generic_plan")
    await raw.execute(f"PREPARE kept({types}) AS {sql}")
    given = ", ".join(map(_literal, values))
    lines = await raw.fetch(f"EXPLAIN (ANALYZE, TIMING OFF) EXECUTE kept({given})")
    await raw.execute("DEALLOCATE kept")
    return _read([line[0] for line in lines])


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{{{', '.join(map(str, value))}}}'" if isinstance(value, list) else f"'{value}'"


def _read(lines: Sequence[str]) -> list[PlanStep]:
    """The steps of a plan as text, which Citus writes too; its JSON of nodes cannot be read."""
    steps: list[PlanStep] = []
    for line in lines:
        if step := STEP.search(line):
            steps.append(PlanStep(step["table"] or "", float(step["rows"]), int(step["loops"])))
        elif removed := REMOVED.search(line):
            steps[-1].rows += int(removed[1])
    return steps


def rows_read(plan: Sequence[PlanStep], table: str | None = None) -> int:
    """The rows that all steps of a plan have read, or only its scans of a table; also those that were not kept."""
    return sum(int(step.rows * step.loops) for step in plan if table in (None, step.table))
