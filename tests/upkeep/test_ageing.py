"""Numbers fade with time and come back with use; what has faded is let go of, and nothing is lost."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from service.access.statements import keys
from service.domain.job import Job, JobName
from service.domain.memory import Revision
from service.domain.request import Call
from service.domain.scope import NIL_ID, NIL_WORKSPACE
from service.memories import lifecycle, revise
from service.memories.statements import memories, versions
from service.postgres.engine import Database
from service.queue.statements import overview
from service.runtime.resources import Resources
from service.upkeep.jobs import ageing
from service.upkeep.statements import fading
from service.worker.registry import TASKS
from tests.support.application import Tables
from tests.support.plans import kept_plan, rows_read
from tests.support.workers import fetch, insert_memory, job_for

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
EARLIER = """
    UPDATE job SET state = 'done', created_at = created_at - make_interval(mins => :minutes)
    WHERE workspace_id = :workspace
"""
STAT = (
    "INSERT INTO memory_stat (workspace_id, memory_id, salience, base_salience, last_accessed, access_count) "
    "VALUES (:workspace, :id, :base, :base, :at, :uses)"
)


async def remember(
    database: Database, workspace: UUID, content: str, *, base: float = 1.0, uses: int = 0, user_id: str = "alice"
) -> UUID:
    memory_id = await insert_memory(database, workspace, content, user_id=user_id)
    async with database.begin(workspace) as session:
        values = {"workspace": workspace, "id": memory_id, "base": base, "at": START, "uses": uses}
        await session.execute(text(STAT), values)
    return memory_id


async def stat(database: Database, workspace: UUID, memory_id: UUID) -> Any:
    [row] = await fetch(database, workspace, "SELECT * FROM memory_stat WHERE memory_id = :id", id=memory_id)
    return row


def on(res: Resources, **passed: float) -> Resources:
    """The clock so much later."""
    now = START + timedelta(**passed)
    return replace(res, clock=lambda: now)


def due(workspace: UUID, name: str) -> Job:
    return job_for(workspace, None, name)


async def test_half_is_left_after_fourteen_days_however_often_it_runs(
    database: Database, res: Resources, workspace: UUID
) -> None:
    memory_id = await remember(database, workspace, "Rows a red boat")
    for hours in (14 * 24, 14 * 24 + 8):
        counts = await ageing.decay(due(workspace, "decay"), on(res, hours=hours))
        found = await stat(database, workspace, memory_id)
        assert found.salience == pytest.approx(0.95**14, abs=1e-9) == pytest.approx(0.488, abs=5e-4)
        assert found.base_salience == 1.0
    assert (counts["seen"], counts["changed"]) == (1, 0), "nothing moved the second time"
    await ageing.decay(due(workspace, "decay"), on(res, days=20_000))
    assert (await stat(database, workspace, memory_id)).salience == pytest.approx(0, abs=0.003)


async def test_use_lifts_salience(database: Database, res: Resources, workspace: UUID) -> None:
    memory_id = await remember(database, workspace, "Rows a red boat", base=0.5, uses=9)
    for days in (0, 3, 14):
        await ageing.decay(due(workspace, "decay"), on(res, days=days))
        expected = 0.5 * 0.95**days * (1 + 0.1 * math.log(10)) + 0.1 * math.exp(-days)
        assert (await stat(database, workspace, memory_id)).salience == pytest.approx(expected, abs=0.002)


async def test_relevance_fades_by_the_hour_and_small_steps_are_not_written(
    database: Database, res: Resources, workspace: UUID
) -> None:
    memory_id = await remember(database, workspace, "Rows a red boat")
    changed = []
    for minutes in (30, 60, 61, 120, 24 * 60):
        counts = await ageing.relevance(due(workspace, "relevance"), on(res, minutes=minutes))
        changed.append(counts["changed"])
        expected = math.exp(math.log(0.95) * minutes / 1440)
        assert (await stat(database, workspace, memory_id)).relevance == pytest.approx(expected, abs=0.002)
    assert changed == [0, 1, 0, 1, 1]
    [memory] = await fetch(database, workspace, "SELECT xmin::text::bigint AS written, version FROM memory")
    await ageing.relevance(due(workspace, "relevance"), on(res, days=9))
    [after] = await fetch(database, workspace, "SELECT xmin::text::bigint AS written, version FROM memory")
    assert memory == after, "the row of the memory is never written"


async def test_batches_go_over_all_of_the_workspace(
    database: Database, res: Resources, workspace: UUID, stranger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fading, "BATCH", 2)
    mine = [await remember(database, workspace, f"Boat {number}") for number in range(5)]
    hers = await remember(database, workspace, "A raft", user_id="bob")
    foreign = await remember(database, stranger.workspace_id, "A foreign boat")
    counts = await ageing.relevance(due(workspace, "relevance"), on(res, days=1))
    assert counts == {"seen": 6, "changed": 6}
    for each in (*mine, hers):
        assert (await stat(database, workspace, each)).relevance == pytest.approx(0.95)
    assert (await stat(database, stranger.workspace_id, foreign)).relevance == 1.0


async def test_a_row_that_is_locked_is_left_to_the_next_run(
    database: Database, res: Resources, workspace: UUID
) -> None:
    held, free = [await remember(database, workspace, each) for each in ("A boat", "A raft")]
    async with database.begin(workspace) as session:
        await session.execute(text("SELECT FROM memory_stat WHERE memory_id = :id FOR UPDATE"), {"id": held})
        counts = await ageing.relevance(due(workspace, "relevance"), on(res, days=1))
    assert counts == {"seen": 2, "changed": 1}
    assert (await ageing.relevance(due(workspace, "relevance"), on(res, days=1)))["changed"] == 1
    assert (await stat(database, workspace, free)).relevance == (await stat(database, workspace, held)).relevance


async def test_what_is_past_its_end_or_unused_is_stale_until_it_is_used(
    database: Database, res: Resources, workspace: UUID
) -> None:
    lasting, ended, current = [await remember(database, workspace, each) for each in ("A boat", "A sale", "A lease")]
    async with database.begin(workspace) as session:
        ends = text("UPDATE memory SET valid_until = :at WHERE id = :id")
        await session.execute(ends, {"at": START + timedelta(days=2), "id": ended})
        await session.execute(ends, {"at": START + timedelta(days=900), "id": current})

    async def flagged(**passed: float) -> set[UUID]:
        await ageing.flag_stale(due(workspace, "flag_stale"), on(res, **passed))
        rows = await fetch(database, workspace, "SELECT memory_id FROM memory_stat WHERE stale_at IS NOT NULL")
        return {row.memory_id for row in rows}

    assert await flagged(days=1) == set()
    assert await flagged(days=3) == {ended}
    assert await flagged(days=91) == {ended, lasting}
    async with database.begin(workspace) as session:
        used = text("UPDATE memory_stat SET last_accessed = :at WHERE memory_id = :id")
        await session.execute(used, {"at": START + timedelta(days=91), "id": lasting})
    assert await flagged(days=92) == {ended}


async def test_the_confidence_of_what_was_only_inferred_fades_by_the_week(
    database: Database, res: Resources, workspace: UUID
) -> None:
    """Also what was used meanwhile; a fact said plainly keeps its confidence, and so does one that a person has set."""
    bases = {"concluded": 0.7, "doubted": 0.5, "implied": 0.85, "said": 0.95}
    ids = {name: await remember(database, workspace, f"A boat, {name}", uses=3) for name in bases}
    async with database.begin(workspace) as session:
        for name, memory_id in ids.items():
            values = {"id": memory_id, "base": bases[name], "at": START}
            await session.execute(
                text("UPDATE memory SET fact_confidence = :base, created_at = :at WHERE id = :id"), values
            )
            await session.execute(
                text("UPDATE memory_stat SET base_confidence = :base, last_accessed = :used WHERE memory_id = :id"),
                {"id": memory_id, "base": bases[name], "used": START + timedelta(days=30)},
            )
    [before] = await fetch(database, workspace, "SELECT max(xmin::text::bigint) AS written FROM memory")
    changed = []
    for days in (6, 7, 8, 13, 14, 70, 70):
        counts = await ageing.decay(due(workspace, "decay"), on(res, days=days))
        changed.append((counts["facts"], counts["facts_changed"]))
        kept = 0.95 ** (days // 7)
        async with database.read(workspace) as session:
            found = await memories.get_many(session, list(ids.values()))
        shown = {name: found[each].current_confidence for name, each in ids.items()}
        assert shown == pytest.approx({**bases, "concluded": 0.7 * kept, "doubted": 0.5 * kept})
        assert {each.fact_confidence for each in found.values()} == set(bases.values())
    assert changed == [(2, 0), (2, 2), (2, 0), (2, 0), (2, 2), (2, 2), (2, 0)]
    [after] = await fetch(database, workspace, "SELECT max(xmin::text::bigint) AS written FROM memory")
    assert before == after, "the rows of the memories are never written"
    await revise.revise(workspace, ids["doubted"], Revision(columns={"fact_confidence": 0.6}), on(res, days=71), Call())
    assert (await ageing.decay(due(workspace, "decay"), on(res, days=90)))["facts"] == 1
    async with database.read(workspace) as session:
        corrected = await memories.get(session, ids["doubted"])
    assert corrected is not None
    assert corrected.current_confidence == corrected.fact_confidence == 0.6


async def test_what_is_said_again_ages_from_then_on(database: Database, res: Resources, workspace: UUID) -> None:
    memory_id = await remember(database, workspace, "Rows a red boat")
    async with database.begin(workspace) as session:
        for statement in (
            "UPDATE memory SET fact_confidence = 0.7, created_at = :at, timestamp = :at WHERE id = :id",
            "UPDATE memory_stat SET base_confidence = 0.7, last_accessed = :at WHERE memory_id = :id",
        ):
            await session.execute(text(statement), {"id": memory_id, "at": START})

    async def aged(days: int) -> Any:
        for run in (ageing.relevance, ageing.decay, ageing.flag_stale):
            await run(due(workspace, run.__name__), on(res, days=days))
        return await stat(database, workspace, memory_id)

    found = await aged(100)
    assert found.stale_at is not None
    assert found.confidence == pytest.approx(0.7 * 0.95**14)
    async with database.begin(workspace) as session:
        await versions.note_repetition(session, memory_id, START + timedelta(days=100))
    found = await aged(107)
    assert found.stale_at is None
    assert found.relevance == found.salience == pytest.approx(0.95**7)
    assert found.confidence == pytest.approx(0.7 * 0.95)
    async with database.begin(workspace) as session:
        await versions.note_repetition(session, memory_id, START + timedelta(days=50))
    assert (await aged(107)).confirmed_at == START + timedelta(days=100), "older news confirms nothing later"


async def test_what_has_faded_is_archived_and_comes_back(database: Database, res: Resources, workspace: UUID) -> None:
    faded = await remember(database, workspace, "Rows a red boat")
    later = on(res, days=70)
    assert await ageing.archive(due(workspace, "forget"), later) == {"archived": 0}
    await ageing.relevance(due(workspace, "relevance"), later)
    fresh = await remember(database, workspace, "Rows a blue boat")
    for count in (1, 0):
        assert await ageing.archive(due(workspace, "forget"), later) == {"archived": count}
    rows = await fetch(database, workspace, "SELECT id, archived FROM memory")
    assert dict(tuple(row) for row in rows) == {faded: True, fresh: False}
    audited = await fetch(database, workspace, "SELECT affected_ids FROM audit_log WHERE operation = 'archive'")
    assert [row.affected_ids for row in audited] == [[faded]]
    restored = await lifecycle.restore(workspace, faded, later, Call())
    assert not restored.archived
    assert await ageing.archive(due(workspace, "forget"), later) == {"archived": 0}


MEMORIES = """
        INSERT INTO memory (workspace_id, id, user_id, content, hash, type, type_confidence, classification_source,
                            importance, importance_level, "timestamp", embedding_status, created_at, updated_at)
        SELECT :workspace, gen_random_uuid(), 'alice', md5(n::text), md5(n::text), 'Context', 1, 'explicit', 0.5, 5,
               now(), 'stored', now(), now()
        FROM generate_series(1, :count) n RETURNING *
"""

FADED = f"""
    WITH old AS ({MEMORIES})
    INSERT INTO memory_stat (workspace_id, memory_id, last_accessed, relevance)
    SELECT workspace_id, id, now(), 0.01 FROM old
"""


async def test_what_has_faded_is_archived_in_batches_that_read_nothing_else(
    database: Database, res: Resources, workspace: UUID, tables: Tables
) -> None:
    async with database.begin(workspace) as session:
        await session.execute(text(FADED), {"workspace": workspace, "count": 250})
    await tables.fetch("ANALYZE memory, memory_stat")
    async with database.read(workspace) as session:
        first = await fading.list_faded(session, after=NIL_ID, batch=100)
        plan = await kept_plan(session, fading.list_faded(session, after=max(first), batch=100))
    assert rows_read(plan, "memory") == rows_read(plan, "memory_stat") == 100
    assert await ageing.archive(due(workspace, "forget"), res) == {"archived": 250}
    entries = await fetch(database, workspace, "SELECT event, before ->> 'archived' FROM memory_history")
    assert [tuple(entry) for entry in entries] == [("UPDATE", "false")] * 250
    audited = await fetch(database, workspace, "SELECT cardinality(affected_ids) FROM audit_log ORDER BY recorded_at")
    assert [row[0] for row in audited] == [100, 100, 50]


UNNAMED = f"""
    WITH said AS ({MEMORIES}), named AS (
        INSERT INTO entity (workspace_id, id, user_id, name, name_key, type, extracted_by, salience, first_seen)
        SELECT :workspace, gen_random_uuid(), 'alice', n::text, n::text, 'person', 'rules', 0.01, '2020-01-01'
        FROM generate_series(1, 100) n RETURNING *
    )
    INSERT INTO memory_entity (workspace_id, memory_id, entity_id)
    SELECT :workspace, said.id, named.id FROM said, named WHERE named.name = '1'
"""


@pytest.mark.parametrize("is_analysed", [False, True])
async def test_the_removal_of_entities_goes_on_where_it_was_and_reads_no_mention_of_others(
    database: Database,
    res: Resources,
    workspace: UUID,
    tables: Tables,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_analysed: bool,
) -> None:
    async with database.begin(workspace) as session:
        await session.execute(text(UNNAMED), {"workspace": workspace, "count": 400})
    if is_analysed:
        await tables.fetch("ANALYZE memory, entity, memory_entity")
    ids = sorted(row.id for row in await fetch(database, workspace, "SELECT id FROM entity"))
    async with database.begin(workspace) as session:
        removing = fading.remove_forgotten(session, after=ids[49], now=START, batch=20)
        plan = await kept_plan(session, removing)
    assert rows_read(plan, "memory_entity") <= 1, "of each only the first"
    left = {row.id for row in await fetch(database, workspace, "SELECT id FROM entity")}
    assert left >= set(ids[:50])
    monkeypatch.setattr(ageing, "BATCH_ROWS", 20)
    counts = await ageing.decay(due(workspace, "decay"), on(res, days=1))
    assert counts["entities_removed"] == len(left) - 1, "the one that is named stays"


async def test_an_entity_fades_and_goes_when_nobody_mentions_it(
    database: Database, res: Resources, workspace: UUID
) -> None:
    memory_id = await remember(database, workspace, "Zelda rows")
    names = {name: uuid4() for name in ("Zelda", "Yann", "Written")}
    async with database.begin(workspace) as session:
        for name, entity_id in names.items():
            values = {"w": workspace, "id": entity_id, "n": name, "at": START}
            values |= {"by": "caller" if name == "Written" else "rules"}
            await session.execute(
                text(
                    "INSERT INTO entity (workspace_id, id, name, name_key, type, extracted_by, first_seen) "
                    "VALUES (:w, :id, :n, lower(:n), 'person', :by, :at)"
                ),
                values,
            )
        named = text("INSERT INTO memory_entity (workspace_id, memory_id, entity_id) VALUES (:w, :m, :e)")
        await session.execute(named, {"w": workspace, "m": memory_id, "e": names["Zelda"]})
    counts = await ageing.decay(due(workspace, "decay"), on(res, days=14))
    assert (counts["entities_changed"], counts["entities_removed"]) == (3, 0)
    rows = await fetch(database, workspace, "SELECT salience, base_salience FROM entity")
    assert [tuple(row) for row in rows] == [(pytest.approx(0.5 * 0.95**14), 0.5)] * 3
    counts = await ageing.decay(due(workspace, "decay"), on(res, days=40))
    assert counts["entities_removed"] == 1
    left = {row.name for row in await fetch(database, workspace, "SELECT name FROM entity")}
    assert left == {"Zelda", "Written"}


async def test_each_workspace_is_aged_when_it_is_due(
    database: Database, res: Resources, workspace: UUID, stranger: Any
) -> None:
    for space in (workspace, stranger.workspace_id):
        await remember(database, space, "Rows a red boat")
    async with database.begin(stranger.workspace_id) as session:
        own = {"job_intervals_min": {"relevance": 15, "forget": 1_440}}
        await keys.change_workspace(session, name=None, settings=own)

    async def runs(space: UUID, name: JobName) -> int:
        async with database.read(space) as session:
            return len(await overview.runs(session, name, limit=100))

    async def pass_by(minutes: int) -> None:
        for space in (workspace, stranger.workspace_id):
            async with res.db.begin(space) as session:  # the worker's: the application may not move a run
                await session.execute(text(EARLIER), {"minutes": minutes, "workspace": space})

    for _ in range(2):
        await TASKS["relevance"].run(job_for(NIL_WORKSPACE, None, "relevance"), res)
    assert [await runs(space, "relevance") for space in (workspace, stranger.workspace_id)] == [1, 1]
    await pass_by(20)
    await TASKS["relevance"].run(job_for(NIL_WORKSPACE, None, "relevance"), res)
    assert [await runs(space, "relevance") for space in (workspace, stranger.workspace_id)] == [1, 2]
    await TASKS["forget"].run(job_for(NIL_WORKSPACE, None, "forget"), res)
    assert [await runs(space, "forget") for space in (workspace, stranger.workspace_id)] == [0, 1]
