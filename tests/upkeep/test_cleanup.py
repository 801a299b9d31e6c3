"""Upkeep removes what has expired, in every workspace, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from service.domain.scope import NIL_WORKSPACE
from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.upkeep.jobs import maintenance
from tests.support.workers import fetch, job_for

OLD_ROWS = (
    "INSERT INTO idempotency (workspace_id, key, fingerprint, status, expires_at) "
    "VALUES (:workspace, :name, 'x', 200, now() - make_interval(days => :days))",
    "INSERT INTO llm_cache (workspace_id, prompt_sha256, task, model, answer, expires_at) "
    "VALUES (:workspace, :name, 'annotate', 'm', '{}', now() - make_interval(days => :days))",
    "INSERT INTO embedding_cache (workspace_id, model, text_sha256, embedding, created_at) "
    "VALUES (:workspace, 'm', :name, '[1]', now() - make_interval(days => :days + 30))",
    "INSERT INTO operation (workspace_id, id, kind, state, finished_at) VALUES (:workspace, gen_random_uuid(), 'x', "
    "'done', now() - make_interval(days => :days + 7))",
    "INSERT INTO job (workspace_id, id, kind, state, max_attempts, finished_at) VALUES (:workspace, gen_random_uuid(), "
    "'x', 'done', 1, now() - make_interval(days => :days + 7))",
    "INSERT INTO model_day (workspace_id, day) VALUES (:workspace, current_date - 400 - CAST(:days AS integer) "
    "* (1 + abs(hashtext(:name)) % 1000))",  # each a day of its own
)


async def fill(database: Database, workspace: UUID, name: str, days: int) -> None:
    async with database.begin(workspace) as session:
        for statement in OLD_ROWS:
            await session.execute(
                text(statement),
                {"workspace": workspace, "days": days} | ({"name": name} if ":name" in statement else {}),
            )


async def left(database: Database, workspace: UUID) -> list[int]:
    tables = ("idempotency", "llm_cache", "embedding_cache", "operation", "job", "model_day")
    return [
        (await fetch(database, workspace, f"SELECT count(*) FROM {table} WHERE workspace_id = '{workspace}'"))[0][0]
        for table in tables
    ]


async def test_what_has_expired_goes_in_every_workspace(
    database: Database, res: Resources, workspace: UUID, stranger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "BATCH", 2)
    for space in (workspace, stranger.workspace_id):
        for number in range(3):
            await fill(database, space, f"old{number}", 1)
        await fill(database, space, "fresh", -1)
    counts = await maintenance.clean_up(
        job_for(NIL_WORKSPACE, None, "cleanup"), replace(res, clock=lambda: datetime.now(UTC))
    )
    others = {"memory", "webhook_delivery"}  # there may be some of other tests' workspaces
    assert min(count for table, count in counts.items() if table not in others) >= 6
    assert set(counts) - others == {
        "idempotency",
        "llm_cache",
        "embedding_cache",
        "operation",
        "job",
        "model_day",
    }
    for space in (workspace, stranger.workspace_id):
        assert await left(database, space) == [1, 1, 1, 1, 1, 1]


async def test_unfinished_jobs_stay(database: Database, res: Resources, workspace: UUID) -> None:
    async with database.begin(workspace) as session:
        await session.execute(
            text(
                "INSERT INTO job (workspace_id, id, kind, max_attempts, created_at, run_after) VALUES "
                "(:workspace, gen_random_uuid(), 'x', 3, now() - interval '1 year', now() - interval '1 year')"
            ),
            {"workspace": workspace},
        )
    await maintenance.clean_up(job_for(NIL_WORKSPACE, None, "cleanup"), res)
    assert (await left(database, workspace))[4] == 1
