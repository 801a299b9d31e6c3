"""Every waiting memory gets the vector of the text it has now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from service.cognition import procedures
from service.cognition.goals import add_goal, revise_goal
from service.cognition.statements import goals
from service.cognition.values import LearnStrategyRequest
from service.conversations.statements import contexts
from service.domain.entity import EntityOwner
from service.domain.errors import EmbeddingError
from service.domain.request import Call
from service.domain.scope import NIL_WORKSPACE, Scope
from service.domain.text import CleanText, content_hash
from service.graph import entity
from service.graph.models import UpsertEntityRequest
from service.postgres.engine import Database, Session
from service.providers.protocols import Vector
from service.runtime.resources import Resources
from service.upkeep.jobs import embed
from service.upkeep.statements import missing_vectors
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.plans import kept_plan, rows_read
from tests.support.workers import fetch, insert_memory, job_for, jobs_of


async def run(res: Resources, workspace: UUID, *ids: UUID) -> None:
    await embed.run_together([job_for(workspace, memory_id, "embed") for memory_id in ids], res)


async def vectors(database: Database, workspace: UUID, memory_id: UUID) -> dict[str, str]:
    sql = "SELECT kind, embedding::text AS embedding FROM memory_vector WHERE memory_id = :id"
    return {row.kind: row.embedding for row in await fetch(database, workspace, sql, id=memory_id)}


async def status(database: Database, workspace: UUID, memory_id: UUID) -> str:
    (row,) = await fetch(database, workspace, "SELECT embedding_status FROM memory WHERE id = :id", id=memory_id)
    return str(row.embedding_status)


async def add_placeholder(database: Database, workspace: UUID, memory_id: UUID, dimension: int) -> None:
    async with database.begin(workspace) as session:
        await session.execute(
            text(
                "INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, embedding) VALUES "
                "(:workspace, :id, 1, 'placeholder', 'alice', CAST(:vector AS halfvec))"
            ),
            {"workspace": workspace, "id": memory_id, "vector": str([1.0] + [0.0] * (dimension - 1))},
        )


async def test_queued_and_placeholder_memories_get_their_vector_in_one_call(
    database: Database, res: Resources, workspace: UUID, embedder: AngleEmbedder
) -> None:
    queued = await insert_memory(database, workspace, "queued text", status="queued")
    held = await insert_memory(database, workspace, "placeholder text", status="placeholder")
    await add_placeholder(database, workspace, held, embedder.dimension)
    await run(res, workspace, queued, held)
    assert sorted(embedder.seen) == ["placeholder text", "queued text"]
    for memory_id in (queued, held):
        assert await status(database, workspace, memory_id) == "stored"
        assert set(await vectors(database, workspace, memory_id)) == {"text"}
    (row,) = await fetch(
        database,
        workspace,
        "SELECT 1 - (embedding::halfvec <=> CAST(:v AS halfvec)) AS cosine, user_id, channel FROM memory_vector "
        "WHERE memory_id = :id",
        v=str(embedder.vector("queued text").tolist()),
        id=queued,
    )
    assert row.cosine == pytest.approx(1, abs=1e-3)
    assert (row.user_id, row.channel) == ("alice", "_global")


async def test_running_again_asks_nobody(
    database: Database, res: Resources, workspace: UUID, embedder: AngleEmbedder
) -> None:
    memory_id = await insert_memory(database, workspace, "once", status="queued")
    await run(res, workspace, memory_id)
    await run(res, workspace, memory_id)
    assert embedder.seen == ["once"]


async def test_a_text_changed_meanwhile_does_not_get_the_old_vector(
    database: Database, res: Resources, workspace: UUID, embedder: AngleEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = await insert_memory(database, workspace, "before", status="queued")

    async def slow(texts: Sequence[CleanText]) -> list[Vector]:
        async with database.begin(workspace) as session:
            await session.execute(
                text("UPDATE memory SET content = 'after', hash = :hash WHERE id = :id"),
                {"hash": content_hash("after"), "id": memory_id},
            )
        return [embedder.vector(each) for each in texts]

    monkeypatch.setattr(embedder, "embed", slow)
    await run(res, workspace, memory_id)
    assert await status(database, workspace, memory_id) == "queued"
    assert await vectors(database, workspace, memory_id) == {}


async def test_a_memory_with_a_job_for_its_context_beside_gets_its_vector(
    database: Database, res: Resources, workspace: UUID
) -> None:
    memory_id = await insert_memory(database, workspace, "queued text", status="queued")
    job = job_for(workspace, memory_id, "embed")
    await embed.run_together([replace(job, payload=contexts.PAYLOAD), job], res)
    assert await status(database, workspace, memory_id) == "stored"


async def test_a_provider_that_is_down_leaves_the_placeholder(
    database: Database, res: Resources, workspace: UUID, embedder: AngleEmbedder
) -> None:
    memory_id = await insert_memory(database, workspace, "later", status="placeholder")
    await add_placeholder(database, workspace, memory_id, embedder.dimension)
    embedder.down = True
    with pytest.raises(EmbeddingError):
        await run(res, workspace, memory_id)
    assert await status(database, workspace, memory_id) == "placeholder"
    assert set(await vectors(database, workspace, memory_id)) == {"placeholder"}


async def test_the_sweep_queues_what_no_job_would_embed(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "QUIET_S", 0.0)
    forgotten = await insert_memory(database, workspace, "forgotten", status="queued")
    await insert_memory(database, workspace, "fine", status="stored")
    sweeping = job_for(NIL_WORKSPACE, None, "embed")
    await embed.run(sweeping, res)
    await embed.run(sweeping, res)
    mine = [job for job in await jobs_of(worker_database, "embed") if job.workspace_id == workspace]
    assert [job.memory_id for job in mine] == [forgotten]


async def test_two_sweeps_at_once_queue_once(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a lost lease: both have looked before either has queued."""
    both, look = asyncio.Barrier(2), missing_vectors.list_unembedded

    async def looked(session: Session, *, quiet_s: float, limit: int) -> list[tuple[UUID, UUID]]:
        found = await look(session, quiet_s=quiet_s, limit=limit)
        await both.wait()
        return found

    monkeypatch.setattr(missing_vectors, "list_unembedded", looked)
    ids = [await insert_memory(database, workspace, f"Boat {number}", status="queued") for number in range(5)]
    async with database.begin(workspace) as session:
        await session.execute(text("UPDATE memory SET updated_at = now() - interval '1 hour'"))
    sweeping = job_for(NIL_WORKSPACE, None, "embed")
    await asyncio.gather(*(embed.run(sweeping, res) for _ in range(2)))
    queued = [row.memory_id for row in await jobs_of(worker_database, "embed") if row.workspace_id == workspace]
    assert sorted(queued) == sorted(ids)


async def test_the_sweep_is_patient_with_what_died(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "QUIET_S", 5.0)
    memory_id = await insert_memory(database, workspace, "poison", status="queued")
    async with database.begin(workspace) as session:
        await session.execute(
            text("UPDATE memory SET updated_at = now() - interval '1 hour' WHERE workspace_id = :workspace")
        )
        for _ in range(3):
            await session.execute(
                text(
                    "INSERT INTO job (workspace_id, id, kind, memory_id, state, max_attempts, finished_at) VALUES "
                    "(:workspace, gen_random_uuid(), 'embed', :id, 'dead', 3, now() - interval '30 seconds')"
                ),
                {"workspace": workspace, "id": memory_id},
            )

    async def waiting() -> int:
        await embed.run(job_for(NIL_WORKSPACE, None, "embed"), res)
        jobs = await jobs_of(worker_database, "embed")
        return sum(job.workspace_id == workspace and job.state == "ready" for job in jobs)

    assert await waiting() == 0  # 5 s, doubled three times, are 40 s
    async with database.begin(workspace) as session:
        await session.execute(text("UPDATE job SET finished_at = now() - interval '60 seconds'"))
    assert await waiting() == 1


async def test_goals_and_strategies_written_without_an_embedder_get_their_vector_later(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, embedder: AngleEmbedder
) -> None:
    scope, asked = Scope(workspace, user_id="alice"), Call("request", uuid4())
    embedder.down = True
    goal = (await add_goal(scope, {"description": "Find a flat"}, res, asked)).goal
    await revise_goal(workspace, goal.id, {"description": "Find a house"}, res, asked)
    strategy = {
        "description": "Ask an agent first",
        "context_pattern": "When a flat is sought",
        "tool_sequence": ["call"],
    }
    await procedures.learn(scope, LearnStrategyRequest.model_validate(strategy), res, asked)
    jobs = [job for job in await jobs_of(worker_database, "embed") if job.workspace_id == workspace]
    assert [job.payload for job in jobs] == [{"words_of": "goals"}] * 2 + [{"words_of": "strategies"}]
    waiting = [replace(job_for(workspace, None, "embed"), payload=job.payload) for job in jobs]
    with pytest.raises(EmbeddingError):
        await embed.run(waiting[0], res)
    embedder.down = False
    await embed.run(waiting[2], res)
    await embed.run_together(waiting, res)
    assert embedder.seen[-2:] == ["When a flat is sought\nAsk an agent first", "Find a house"]
    for table, words in (("strategy", embedder.seen[-2]), ("goal", embedder.seen[-1])):
        sql = f"SELECT 1 - (embedding::halfvec <=> CAST(:v AS halfvec)) AS cosine FROM {table}_vector"
        (row,) = await fetch(database, workspace, sql, v=str(embedder.vector(words).tolist()))
        assert row.cosine == pytest.approx(1, abs=1e-3)


async def test_an_entity_described_without_an_embedder_gets_its_vector_later(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, embedder: AngleEmbedder
) -> None:
    owner, asked = EntityOwner(workspace, "alice", "_global"), Call("request", uuid4())
    boat, server = (
        UpsertEntityRequest.model_validate({"name": "Zephyr", "description": words})
        for words in ("A boat", "The build server")
    )
    await entity.upsert(owner, boat, None, res, asked)
    embedder.down = True
    await entity.upsert(owner, server, None, res, asked)
    sql = "SELECT 1 - (embedding::halfvec <=> CAST(:v AS halfvec)) AS cosine FROM entity_vector"
    words = "Zephyr: The build server"
    vector = str(embedder.vector(words).tolist())
    assert await fetch(database, workspace, sql, v=vector) == []
    (job,) = [job for job in await jobs_of(worker_database, "embed") if job.workspace_id == workspace]
    embedder.down = False
    await embed.run(replace(job_for(workspace, None, "embed"), payload=job.payload), res)
    assert embedder.seen[-1] == words
    (row,) = await fetch(database, workspace, sql, v=vector)
    assert row.cosine == pytest.approx(1, abs=1e-3)


async def test_a_goal_reworded_meanwhile_does_not_get_the_vector_of_the_old_words(
    database: Database, res: Resources, workspace: UUID, embedder: AngleEmbedder
) -> None:
    embedder.down = True
    scope, asked = Scope(workspace, user_id="alice"), Call("r", uuid4())
    goal = (await add_goal(scope, {"description": "before"}, res, asked)).goal
    async with database.begin(workspace) as session:
        made = {goal.id: (CleanText("other words"), embedder.vector("other words"))}
        assert await goals.LATE_VECTORS.store(session, made, generation=1) == 0
    assert await fetch(database, workspace, "SELECT goal_id FROM goal_vector") == []


HALF_MADE = {
    "memory": """
    WITH texts AS (
        INSERT INTO memory (workspace_id, id, user_id, content, hash, type, type_confidence, classification_source,
                            importance, importance_level, "timestamp", embedding_status, created_at, updated_at)
        SELECT :workspace, CAST('00000000-0000-0000-0000-' || lpad(n::text, 12, '0') AS uuid), 'alice', md5(n::text),
               md5(n::text), 'Context', 1, 'explicit', 0.5, 5, now(), 'stored', now(), now()
        FROM generate_series(1, 400) n RETURNING *
    )
    INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, embedding)
    SELECT workspace_id, id, 2, 'text', user_id, CAST('[1,2]' AS halfvec) FROM texts ORDER BY id LIMIT 300
    """,
    "goal": """
    WITH texts AS (
        INSERT INTO goal (workspace_id, id, user_id, description, updated_at)
        SELECT :workspace, CAST('00000000-0000-0000-0000-' || lpad(n::text, 12, '0') AS uuid), 'alice', md5(n::text),
               now()
        FROM generate_series(1, 400) n RETURNING *
    )
    INSERT INTO goal_vector (workspace_id, goal_id, generation, embedding)
    SELECT workspace_id, id, 2, CAST('[1,2]' AS halfvec) FROM texts ORDER BY id LIMIT 300
    """,
}


@pytest.mark.parametrize("kind", HALF_MADE)
async def test_the_next_batch_reads_no_vectors_of_those_before(
    database: Database, workspace: UUID, tables: Tables, kind: str
) -> None:
    async with database.begin(workspace) as session:
        await session.execute(text(HALF_MADE[kind]), {"workspace": workspace})
    await tables.fetch(f"ANALYZE {kind}, {kind}_vector")
    find, _ = missing_vectors.WALKS[0 if kind == "memory" else 3]
    async with database.read(workspace) as session:
        assert len(await find(session, UUID(int=0), generation=2)) == missing_vectors.BATCH
        plan = await kept_plan(session, find(session, UUID("0" * 20 + f"{290:012}"), generation=2))
    vectors = [name for name in (f"{kind}_vector_p{n}" for n in range(64)) if rows_read(plan, name)]
    assert rows_read(plan, kind) <= 110
    assert sum(rows_read(plan, name) for name in (f"{kind}_vector", *vectors)) <= 10
