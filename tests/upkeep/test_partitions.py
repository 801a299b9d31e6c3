"""There is a partition for every day to come, also for rows already in DEFAULT, and none beyond retention."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from service.domain.scope import NIL_WORKSPACE
from service.postgres.engine import Database, Session
from service.runtime.resources import Resources
from service.upkeep.jobs import maintenance
from tests.support.workers import fetch, job_for


async def run(res: Resources, now: datetime) -> dict[str, int]:
    return dict(
        await maintenance.keep_partitions(
            job_for(NIL_WORKSPACE, None, "audit_partitions"), replace(res, clock=lambda: now)
        )
    )


async def write(database: Database, workspace: UUID, recorded_at: datetime) -> None:
    async with database.begin(workspace) as session:
        await session.execute(
            text(
                "INSERT INTO audit_log (workspace_id, recorded_at, id, operation) VALUES (:workspace, :at, :id, 'test')"
            ),
            {"workspace": workspace, "at": recorded_at, "id": uuid4()},
        )


async def where(database: Database, workspace: UUID) -> list[str]:
    sql = "SELECT tableoid::regclass::text FROM audit_log ORDER BY recorded_at"
    return [row[0] for row in await fetch(database, workspace, sql)]


async def test_rows_in_default_move_into_their_partition(database: Database, res: Resources, workspace: UUID) -> None:
    """Without moving them the new partition could not be attached: its rows would stand in two places."""
    now = datetime.now(UTC)
    past, future = now - timedelta(days=40), now + timedelta(days=20)
    for at in (past, future, future + timedelta(seconds=1)):
        await write(database, workspace, at)
    assert set(await where(database, workspace)) == {"audit_log_default"}
    counts = await run(res, now)
    assert counts["made"] >= 2
    assert await where(database, workspace) == [f"audit_log_{at:%Y%m%d}" for at in (past, future, future)]


async def test_a_week_ahead_is_made_once(database: Database, res: Resources, workspace: UUID) -> None:
    now = datetime.now(UTC)
    await run(res, now)
    assert (await run(res, now))["made"] == 0
    await write(database, workspace, now + timedelta(days=6))
    assert "default" not in (await where(database, workspace))[0]


async def test_what_is_older_than_retention_goes_and_the_rest_stays(
    database: Database, res: Resources, workspace: UUID
) -> None:
    now = datetime.now(UTC)
    old, kept = now - timedelta(days=402), now - timedelta(days=399)
    await write(database, workspace, old)
    await write(database, workspace, kept)
    shorter = replace(res, settings=res.settings.changed(audit_retention_days=400))
    assert (await run(shorter, now))["dropped"] >= 1
    assert await where(database, workspace) == [f"audit_log_{kept:%Y%m%d}"]


async def test_history_has_a_retention_of_its_own(res: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    oldest: dict[str, datetime] = {}

    async def drop(_session: Session, parent: str, older_than: datetime) -> int:
        oldest[parent] = older_than
        return 0

    monkeypatch.setattr("service.upkeep.statements.maintenance.drop_partitions", drop)
    now = datetime.now(UTC)
    await run(replace(res, settings=res.settings.changed(history_retention_days=30)), now)
    assert oldest.keys() >= {"audit_log", "tool_invocation"}
    assert oldest["memory_history"] == oldest["conversation_log"] == now - timedelta(days=30)
