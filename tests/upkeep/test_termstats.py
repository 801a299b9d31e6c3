"""Document frequencies: what the job counts, what other workspaces add, and which terms open candidates."""

from __future__ import annotations

from uuid import UUID

import pytest
from sqlalchemy import text

from service.domain import sizes
from service.domain.scope import NIL_WORKSPACE
from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.search.statements import approximate, term_statistics
from service.search.statements.search_plan import Candidates
from service.search.statements.term_statistics import MIN_WORKSPACES
from service.upkeep.jobs import maintenance
from service.worker.registry import TASKS
from tests.conftest import Tenant, new_tenant
from tests.support.workers import job_for

# every text has word 1, every second word 2, the last one word 3; every fourth has a context with word 4
FILL = text("""
    INSERT INTO memory (workspace_id, id, user_id, content, hash, terms, context_terms, context_bm25, type,
        type_confidence, classification_source, importance, importance_level, "timestamp", embedding_status,
        created_at, updated_at)
    SELECT :workspace, gen_random_uuid(), 'u', 'x', n::text,
        CASE WHEN n = :rows THEN '{1,3}'::integer[] WHEN n % 2 = 0 THEN '{1,2}' ELSE '{1}' END,
        CASE WHEN n % 4 = 0 THEN '{1,4}'::integer[] ELSE '{}' END,
        CASE WHEN n % 4 = 0 THEN '{1:1,4:1}/1000000000'::sparsevec END,
        'Context', 1, 'default', 0.5, 5, now(), 'stored', now(), now()
    FROM generate_series(1, :rows) n ON CONFLICT DO NOTHING
""")
COUNTED = text("SELECT term, texts, contexts FROM term_stat WHERE workspace_id = :workspace ORDER BY term")


async def _fill(database: Database, workspace: UUID, rows: int) -> None:
    async with database.begin(workspace) as session:
        await session.execute(FILL, {"workspace": workspace, "rows": rows})


async def _counted(database: Database, workspace: UUID) -> list[tuple[int, int, int]]:
    async with database.read(workspace) as session:
        rows = await session.execute(COUNTED, {"workspace": workspace})
        return [(row.term, row.texts, row.contexts) for row in rows]


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workspaces of at least 20 memories are large here."""
    monkeypatch.setattr(sizes, "EXACT_ROWS", 40)


async def _run(res: Resources) -> None:
    await maintenance.count_terms(job_for(NIL_WORKSPACE, None, "count_terms"), res)


async def test_the_job_counts_large_workspaces(
    database: Database, res: Resources, tenant: Tenant, stranger: Tenant
) -> None:
    await _fill(database, tenant.workspace_id, 41)
    await _fill(database, stranger.workspace_id, 19)
    await _run(res)
    # word 3 stands in one text: too few for a row; a text without a context is its own
    assert await _counted(database, tenant.workspace_id) == [(0, 41, 41), (1, 41, 41), (2, 20, 10), (4, 0, 10)]
    assert await _counted(database, stranger.workspace_id) == []
    await _fill(database, tenant.workspace_id, 2)
    async with database.begin(tenant.workspace_id) as session:
        await session.execute(text("UPDATE term_stat SET created_at = now() - interval '1 hour'"))
    await _run(res)
    assert (await _counted(database, tenant.workspace_id))[0] == (0, 43, 43)


async def test_one_that_has_grown_large_need_not_wait_for_the_hour(
    database: Database, res: Resources, tenant: Tenant, stranger: Tenant
) -> None:
    """The job looks every few minutes; what was counted lately is left alone."""
    interval_s = TASKS["count_terms"].interval_s
    assert interval_s is not None
    assert interval_s < 600
    await _fill(database, tenant.workspace_id, 41)
    await _run(res)
    await _fill(database, tenant.workspace_id, 2)
    await _fill(database, stranger.workspace_id, 30)
    await _run(res)
    assert (await _counted(database, stranger.workspace_id))[0] == (0, 30, 30)
    assert (await _counted(database, tenant.workspace_id))[0] == (0, 41, 41)


async def test_a_sample_stands_for_the_rest(
    database: Database, workspace: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _fill(database, workspace, 2_000)
    monkeypatch.setattr(term_statistics, "MAX_SAMPLED", 500)
    async with database.begin(workspace) as session:
        await term_statistics.count(session)
    found = {term: texts for term, texts, _ in await _counted(database, workspace)}
    assert found[0] == 2_000
    assert found[1] == pytest.approx(2_000, rel=0.2)
    assert found[2] == pytest.approx(1_000, rel=0.25)


async def test_words_of_few_workspaces_are_not_told_to_others(
    database: Database, res: Resources, stranger: Tenant
) -> None:
    for number in range(MIN_WORKSPACES):
        tenant = await new_tenant(database)
        await _fill(database, tenant.workspace_id, 25)
        if number == 0:
            async with database.begin(tenant.workspace_id) as session:
                await session.execute(
                    text("UPDATE memory SET terms = '{1,2,77}' WHERE workspace_id = :w"), {"w": tenant.workspace_id}
                )
    await _run(res)
    async with database.read(stranger.workspace_id) as session:
        seen = set(await session.scalars(text("SELECT term FROM term_stat")))
        stats = await approximate.read_frequencies(session, [1, 77])
    assert {0, 1, 2} <= seen
    assert 77 not in seen
    assert stats == Candidates(0, {1: 0.0, 77: 0.0}, {1: 0.0, 77: 0.0})
    async with database.read(tenant.workspace_id) as session:
        stats = await approximate.read_frequencies(session, [1, 2, 77])
    assert stats.text_count == 25
    # counted in 25 and 12 of 25, then drawn towards everybody's share, which other tests have a part in
    assert 0 < stats.text_df[2] < stats.text_df[1] <= 25
    assert stats.text_df[2] != 12
    assert stats.text_df[77] == 0


async def test_the_app_cannot_change_what_all_share(database: Database, workspace: UUID) -> None:
    row = text("INSERT INTO term_stat (workspace_id, term, texts, contexts) VALUES (:w, 1, 1, 1)")
    with pytest.raises(Exception, match="row-level security"):
        async with database.begin(workspace) as session:
            await session.execute(row, {"w": NIL_WORKSPACE})


SMOOTHED = [
    ((50, 1_000, 0, 0), 50.0),  # nobody else: as counted
    ((0, 1_000, 500, 1_000), 250.0),  # half of the weight is the others' at 1,000 texts
    ((100, 99_000, 0, 1_000), 99.0),  # next to nothing at 99,000
    ((5, 0, 7, 10), 0.0),  # nothing was counted here
    ((1_000, 1_000, 1_000, 1_000), 1_000.0),
]


@pytest.mark.parametrize(("given", "wanted"), SMOOTHED)
def test_smoothing(given: tuple[int, int, int, int], wanted: float) -> None:
    assert approximate.smooth(*given) == pytest.approx(wanted)


SELECTIVE = [
    ({1: 10.0, 2: 500.0, 3: 30.0}, 20_000, [1, 3]),  # 2 stands in 2.5 % of the texts
    ({1: 10.0, 2: 400.0, 3: 30.0}, 20_000, [1, 3, 2]),
    ({1: 9_000.0, 2: 5_000.0}, 20_000, [2]),  # nothing rarer: the rarest alone
    ({1: 6_000.0, 2: 5_000.0, 3: 7.0}, 1_000_000, [3, 2]),  # together they would open more than 10,000 rows
    ({}, 20_000, []),
]


@pytest.mark.parametrize(("counts", "texts", "wanted"), SELECTIVE)
def test_rare_terms_open_candidates(counts: dict[int, float], texts: int, wanted: list[int]) -> None:
    assert approximate.selective_terms(counts, texts) == wanted


COMPANIONS = [
    ({1: 10.0, 2: 30_000.0}, 1_000_000, []),  # a rare one opens enough
    ({1: 9_000.0, 2: 30_000.0}, 100_000, []),  # frequent, but not too many to be read
    ({1: 30_000.0, 2: 40_000.0, 3: 50_000.0, 4: 60_000.0}, 1_000_000, [2, 3]),
    ({1: 30_000.0, 2: 30_000.0, 3: 50_000.0}, 1_000_000, [3]),  # 1 and 2 stand in the same texts
    ({1: 30_000.0}, 1_000_000, []),
    ({}, 1_000_000, []),
]


@pytest.mark.parametrize(("counts", "texts", "wanted"), COMPANIONS)
def test_companions_of_a_frequent_term(counts: dict[int, float], texts: int, wanted: list[int]) -> None:
    assert approximate.companion_terms(counts, texts) == wanted
