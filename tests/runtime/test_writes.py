"""New rows of several tables are written together, in the order given, whatever their number."""

from __future__ import annotations

from uuid import UUID

import pytest
from sqlalchemy import text

from service.domain.job import NewJob
from service.postgres import direct
from service.postgres.direct import InsertBatch, NewRows
from service.postgres.engine import Database, Session, driver
from service.queue.statements import queue

INTO_A = text("INSERT INTO a (n, word) VALUES (:n, :word)")
INTO_B = text("INSERT INTO b (word, n) VALUES (:word, :n)")


async def two_tables(session: Session) -> None:
    await (await driver(session)).execute(
        "CREATE TEMP TABLE a (n integer, word text, seq serial) ON COMMIT DROP;"
        "CREATE TEMP TABLE b (word text, n integer, seq serial) ON COMMIT DROP"
    )


async def words(session: Session, table: str) -> list[str]:
    return list(await session.scalars(text(f"SELECT word || n FROM {table} ORDER BY seq")))


@pytest.mark.parametrize("count", [1, 2, 3, 40])
async def test_rows_of_two_tables_are_all_written_in_order(database: Database, workspace: UUID, count: int) -> None:
    rows = [{"n": n, "word": "x", "unused": object()} for n in range(count)]
    async with database.begin(workspace) as session:
        await two_tables(session)
        await direct.insert(session, NewRows(INTO_A, rows), NewRows(INTO_A, []), NewRows(INTO_B, rows[:1]))
        assert await words(session, "a") == [f"x{n}" for n in range(count)]
        assert await words(session, "b") == ["x0"]


async def test_a_batch_writes_what_was_added_since_the_last_flush(database: Database, workspace: UUID) -> None:
    async with database.begin(workspace) as session:
        await two_tables(session)
        batch = InsertBatch(session)
        batch.add(NewRows(INTO_A, [{"n": 1, "word": "x"}]), NewRows(INTO_B, [{"n": 2, "word": "y"}]))
        assert await words(session, "a") == []
        await batch.flush()
        await batch.flush()
        batch.add(NewRows(INTO_A, [{"n": 3, "word": "z"}]))
        await batch.flush()
        assert (await words(session, "a"), await words(session, "b")) == (["x1", "z3"], ["y2"])


async def test_a_job_written_with_its_cause_has_the_defaults_of_the_table(database: Database, workspace: UUID) -> None:
    job = NewJob("enrich", payload={"a": [1, None]}, max_attempts=2)
    async with database.begin(workspace) as session:
        await direct.insert(session, queue.new_rows(workspace, [job]))
        row = (await session.execute(text("SELECT * FROM job WHERE kind = 'enrich' AND max_attempts = 2"))).one()
    assert (row.state, row.attempts, row.payload) == ("ready", 0, {"a": [1, None]})
