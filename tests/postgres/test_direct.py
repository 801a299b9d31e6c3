from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest
from sqlalchemy import DateTime, bindparam, text

from service.postgres import direct
from service.postgres.engine import Database, Session, driver, use_custom_plans
from service.postgres.vectors import Half


async def test_values_go_by_name_and_columns_come_as_attributes(database: Database, workspace: UUID) -> None:
    statement = text("SELECT CAST(:b AS text) || CAST(:a AS text) || CAST(:b AS text) AS joined, 1 AS id")
    async with database.read(workspace) as session:
        [row] = await direct.fetch(session, statement, {"a": "x", "b": "y", "unused": 3})
        assert (row.joined, row.id) == ("yxy", 1)
        with pytest.raises(AttributeError):
            _ = row.missing
        assert await direct.first(session, text("SELECT 1 AS one WHERE CAST(:n AS integer) > 1"), {"n": 1}) is None


async def test_a_types_conversion_is_applied(database: Database, workspace: UUID) -> None:
    statement = text("SELECT CAST(:vector AS halfvec) <=> :vector AS distance, :at AS moment").bindparams(
        bindparam("vector", type_=Half()), bindparam("at", type_=DateTime(timezone=True))
    )
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    async with database.read(workspace) as session:
        [row] = await direct.fetch(session, statement, {"vector": np.ones(3, dtype=np.float32), "at": moment})
    assert row.distance == pytest.approx(0.0)
    assert row.moment == moment


async def test_many_runs_once_for_each(database: Database, workspace: UUID) -> None:
    async with database.begin(workspace) as session:
        await (await driver(session)).execute("CREATE TEMP TABLE seen (n integer) ON COMMIT DROP")
        await direct.fetch_many(session, text("INSERT INTO seen VALUES (:n)"), [{"n": 1}, {"n": 2}])
        [row] = await direct.fetch(session, text("SELECT array_agg(n ORDER BY n) AS all_of_them FROM seen"), {})
    assert row.all_of_them == [1, 2]


async def _settings(session: Session) -> dict[str, str]:
    names = ("plan_cache_mode", "enable_seqscan", "enable_hashjoin", "enable_mergejoin")
    raw = await driver(session)
    return {name: await raw.fetchval("SELECT current_setting($1)", name) for name in names}


async def test_generic_plans_end_with_the_transaction(database: Database, workspace: UUID) -> None:
    async with database.begin(workspace) as session:
        usual = await _settings(session)
    assert usual["plan_cache_mode"] == "force_custom_plan"
    for opened in (database.begin(workspace, generic_plans=True), database.read(workspace, generic_plans=True)):
        async with opened as session:
            kept = await _settings(session)
            assert kept == dict.fromkeys(usual, "off") | {"plan_cache_mode": "force_generic_plan"}
            await use_custom_plans(session)
            assert await _settings(session) == usual | {"enable_seqscan": "off"}
    async with database.read(workspace) as session:
        assert await _settings(session) == usual
