"""A memory gets its entities and its summary once, and only those of its text."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from service.domain.entity import NamedEntity
from service.domain.errors import LockedOut
from service.domain.job import Job
from service.domain.text import content_hash
from service.memories.jobs import enrich
from service.memories.statements import deletion, history
from service.postgres.engine import Database
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.workers import enrich_like_queue, fetch, insert_memory, job_for

TEXT = "Priya Raman runs our PostgreSQL cluster in Lisbon. She likes it."


async def run(res: Resources, workspace: UUID, memory_id: UUID, *, attempts: int = 1) -> None:
    await enrich.run(job_for(workspace, memory_id, "enrich", attempts=attempts), res)


async def names(database: Database, workspace: UUID, memory_id: UUID) -> set[str]:
    sql = "SELECT e.name FROM memory_entity me JOIN entity e ON e.id = me.entity_id WHERE me.memory_id = :id"
    return {row.name for row in await fetch(database, workspace, sql, id=memory_id)}


async def test_a_memory_gets_entities_summary_and_its_time(database: Database, res: Resources, workspace: UUID) -> None:
    memory_id = await insert_memory(database, workspace, TEXT)
    await run(res, workspace, memory_id)
    (row,) = await fetch(database, workspace, "SELECT * FROM memory WHERE id = :id", id=memory_id)
    assert row.summary == "Priya Raman runs our PostgreSQL cluster in Lisbon."
    assert row.enriched_at is not None
    assert (row.enrichment_attempts, row.version) == (1, 1)
    assert {"Priya Raman", "PostgreSQL", "Lisbon"} <= await names(database, workspace, memory_id)
    found = await fetch(database, workspace, "SELECT * FROM entity WHERE name_key = 'priya raman'")
    assert [(each.user_id, each.type, each.extracted_by) for each in found] == [("alice", "person", "rules")]


async def test_it_gives_way_to_a_request_that_holds_a_memory(
    database: Database, res: Resources, workspace: UUID
) -> None:
    memory_id = await insert_memory(database, workspace, TEXT)
    async with database.begin(workspace) as session:
        await history.lock(session, [memory_id])
        with pytest.raises(LockedOut):
            await asyncio.wait_for(run(res, workspace, memory_id), 0.9)  # before Postgres looks for a circle
    await run(res, workspace, memory_id)
    assert await names(database, workspace, memory_id)


async def test_a_known_name_counts_in_any_case_and_by_its_alias(
    database: Database, res: Resources, workspace: UUID
) -> None:
    async with database.begin(workspace) as session:
        await session.execute(
            text(
                "WITH new AS (INSERT INTO entity (workspace_id, id, user_id, name, name_key, type, extracted_by) "
                "VALUES (:workspace, :id, 'alice', 'Quillfeather', 'quillfeather', 'project', 'caller')) "
                "INSERT INTO entity_alias (workspace_id, entity_id, alias_key, alias, user_id) "
                "VALUES (:workspace, :id, 'qf', 'QF', 'alice')"
            ),
            {"workspace": workspace, "id": uuid4()},
        )
    memory_id = await insert_memory(database, workspace, "the deadline of quillfeather moved, so qf ships in may")
    await run(res, workspace, memory_id)
    assert await names(database, workspace, memory_id) == {"Quillfeather"}
    (entity,) = await fetch(database, workspace, "SELECT type, extracted_by FROM entity")
    assert tuple(entity) == ("project", "caller")


async def test_a_changed_text_drops_the_names_it_no_longer_has(
    database: Database, res: Resources, workspace: UUID
) -> None:
    memory_id = await insert_memory(database, workspace, "We met in Lisbon.")
    await run(res, workspace, memory_id)
    await rewrite(database, workspace, memory_id, "We met in Vienna.")
    await run(res, workspace, memory_id)
    assert await names(database, workspace, memory_id) == {"Vienna"}


async def test_a_second_attempt_shows_before_its_result(
    database: Database, res: Resources, workspace: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_text: str, _known: dict[str, NamedEntity]) -> enrich.Findings:
        raise KeyError

    memory_id = await insert_memory(database, workspace, TEXT)
    monkeypatch.setattr(enrich, "find_by_rules", broken)
    with pytest.raises(KeyError):
        await run(res, workspace, memory_id, attempts=3)
    (row,) = await fetch(database, workspace, "SELECT * FROM memory WHERE id = :id", id=memory_id)
    assert (row.enrichment_attempts, row.enriched_at) == (3, None)


# -- the graph ----------------------------------------------------------------------------------------------------

EDGES = "SELECT source_id, rel_type, target_id, strength, properties FROM memory_edge ORDER BY rel_type, source_id"
TOLD = """
    SELECT s.name AS source, e.rel_type, e.label, t.name AS target, e.extracted_by,
           (SELECT count(*) FROM entity_edge_source x WHERE x.edge_id = e.id) AS memories
    FROM entity_edge e JOIN entity s ON s.id = e.source_id JOIN entity t ON t.id = e.target_id ORDER BY 1, 2, 4
"""


async def told(database: Database, workspace: UUID) -> list[tuple[str, ...]]:
    return [tuple(row)[:4] for row in await fetch(database, workspace, TOLD)]


async def run_with(res: Resources, workspace: UUID, memory_id: UUID, **payload: object) -> None:
    job = replace(job_for(workspace, memory_id, "enrich"), payload=payload)
    await enrich.run(job, res)


async def test_plain_statements_become_relations_with_evidence(
    database: Database, res: Resources, workspace: UUID
) -> None:
    texts = (
        "Priya Raman works at Brightwave Labs.",
        "Priya Raman lives in Lisbon. Priya Raman works at Brightwave Labs.",
    )
    ids = [await insert_memory(database, workspace, each) for each in texts]
    for memory_id in ids:
        await run(res, workspace, memory_id)
    found = await fetch(database, workspace, TOLD)
    assert [tuple(row) for row in found] == [
        ("Priya Raman", "LIVES_IN", "lives_in", "Lisbon", "rules", 1),
        ("Priya Raman", "WORKS_FOR", "works_at", "Brightwave Labs", "rules", 2),
    ]
    await erase_all(database, workspace, ids[:1], res)
    assert len(await told(database, workspace)) == 2, "the other memory still says so"
    await erase_all(database, workspace, ids[1:], res)
    assert await told(database, workspace) == []
    assert await fetch(database, workspace, "SELECT id FROM entity") == []


async def erase_all(database: Database, workspace: UUID, ids: list[UUID], res: Resources) -> None:
    async with database.begin(workspace) as session:
        assert await deletion.delete_memories(session, ids, generation=res.generation) == sorted(ids)


async def test_a_changed_text_takes_back_what_it_told(database: Database, res: Resources, workspace: UUID) -> None:
    memory_id = await insert_memory(database, workspace, "Priya Raman works at Brightwave Labs.")
    await run_with(
        res, workspace, memory_id, entities=[["Tom", "person"], ["Ana", "person"]], relations=[["Tom", "knows", "Ana"]]
    )
    assert await told(database, workspace) == [
        ("Priya Raman", "WORKS_FOR", "works_at", "Brightwave Labs"),
        ("Tom", "KNOWS", "knows", "Ana"),
    ]
    await rewrite(database, workspace, memory_id, "Priya Raman lives in Lisbon.")
    await run(res, workspace, memory_id)
    assert await told(database, workspace) == [("Priya Raman", "LIVES_IN", "lives_in", "Lisbon")]


async def test_what_a_model_read_is_kept_beside(database: Database, res: Resources, workspace: UUID) -> None:
    """Alice (person), Google (organization), Alice works_at Google."""
    memory_id = await insert_memory(database, workspace, "she has a desk there now")
    entities = [["Alice", "person"], ["Google", "Organizations"], ["User", "person"]]
    relations = [["Alice", "works_at", "Google"], ["User", "knows", "Alice"], ["Alice", "likes", "Nobody Named"]]
    await run_with(res, workspace, memory_id, entities=entities, relations=relations)
    found = await fetch(database, workspace, "SELECT name, type, extracted_by FROM entity ORDER BY name")
    assert [tuple(row) for row in found] == [("Alice", "person", "llm"), ("Google", "organization", "llm")]
    assert await told(database, workspace) == [("Alice", "WORKS_FOR", "works_at", "Google")]
    await run_with(res, workspace, memory_id, entities=entities, relations=relations)
    assert len(await told(database, workspace)) == 1


async def test_near_memories_are_tied(database: Database, res: Resources, workspace: UUID) -> None:
    """SIMILAR_TO what deduplication saw above the bound, as strong as it is similar; nothing for another text."""
    ids = [await insert_memory(database, workspace, f"note {number}") for number in range(4)]
    neighbours = [[str(ids[0]), 0.91], [str(ids[1]), 0.79], [str(ids[2]), 0.85], [str(UUID(int=9)), 0.99]]
    await run_with(res, workspace, ids[3], neighbours=neighbours, hash=content_hash("note 3"))
    found = await fetch(database, workspace, EDGES)
    similar = {(row.target_id, row.strength) for row in found if row.rel_type == "SIMILAR_TO"}
    assert similar == {(ids[0], 0.91), (ids[2], 0.85)}
    assert {row.properties["extracted_by"] for row in found} == {"rules"}
    await run_with(res, workspace, ids[2], neighbours=[[str(ids[0]), 0.9]], hash="another")
    assert len(await fetch(database, workspace, EDGES)) == len(found) + 1, "only the one before, no vector to compare"


async def test_the_memory_just_before_is_tied(database: Database, res: Resources, workspace: UUID) -> None:
    first = await insert_memory(database, workspace, "the first")
    other = await insert_memory(database, workspace, "of bob", user_id="bob")
    second = await insert_memory(database, workspace, "the second")
    for memory_id in (first, other, second):
        await run(res, workspace, memory_id)
    found = await fetch(database, workspace, EDGES)
    assert [(row.source_id, row.rel_type, row.target_id) for row in found] == [(first, "OCCURRED_BEFORE", second)]
    assert 0.9 < found[0].strength <= 1


async def test_the_nearest_are_looked_for_when_the_write_did_not(
    database: Database, res: Resources, workspace: UUID, embedder: AngleEmbedder
) -> None:
    embedder.place("one", 1.0)
    embedder.place("other", 0.9)
    ids = [await insert_memory(database, workspace, each) for each in ("one", "other")]
    async with database.begin(workspace) as session:
        for memory_id, content in zip(ids, ("one", "other"), strict=True):
            await session.execute(
                text(
                    "INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, embedding) "
                    "VALUES (:workspace, :id, 1, 'text', 'alice', CAST(:vector AS text)::halfvec)"
                ),
                {"workspace": workspace, "id": memory_id, "vector": str(embedder.vector(content).tolist())},
            )
    await run(res, workspace, ids[1])
    found = [row for row in await fetch(database, workspace, EDGES) if row.rel_type == "SIMILAR_TO"]
    assert [(row.source_id, row.target_id) for row in found] == [(ids[1], ids[0])]
    assert found[0].strength == pytest.approx(0.9, abs=0.002)


# -- several at once ----------------------------------------------------------------------------------------------

EVERYTHING = {
    "memory": "SELECT content, summary, enriched_at IS NULL, enrichment_attempts, version FROM memory ORDER BY 1, 2",
    "entity": "SELECT user_id, channel, name, type, extracted_by, first_seen FROM entity ORDER BY 1, 2, 3",
    "names": "SELECT m.content, e.name, e.user_id, me.extracted_by FROM memory_entity me JOIN memory m "
    "ON m.id = me.memory_id JOIN entity e ON e.id = me.entity_id ORDER BY 1, 2, 3",
    "told": "SELECT s.name, e.label, t.name, e.extracted_by, e.confidence, m.content, x.extracted_by "
    "FROM entity_edge e JOIN entity s ON s.id = e.source_id JOIN entity t ON t.id = e.target_id "
    "JOIN entity_edge_source x ON x.edge_id = e.id JOIN memory m ON m.id = x.memory_id ORDER BY 1, 2, 3, 6",
    "edges": "SELECT a.content, e.rel_type, b.content, e.properties FROM memory_edge e "
    "JOIN memory a ON a.id = e.source_id JOIN memory b ON b.id = e.target_id ORDER BY 1, 2, 3",
}
TEXTS: tuple[tuple[str | None, str, dict[str, object]], ...] = (
    ("alice", "Priya Raman works at Brightwave Labs.", {}),
    ("bob", "Priya Raman lives in Lisbon.", {}),
    ("alice", "we asked priya raman about Lisbon", {"entities": [["Tom", "person"], ["Lisbon", "project"]]}),
    (None, "Priya Raman lives in Lisbon.", {}),
    ("alice", "Priya Raman works at Brightwave Labs. Priya Raman lives in Lisbon.", {}),
    (
        "alice",
        "she knows him",
        {"entities": [["Ana", "person"], ["tom", "person"]], "relations": [["Ana", "knows", "tom"]]},
    ),
    ("bob", "nothing to see here", {}),
)


async def made(database: Database, workspace: UUID) -> list[Job]:
    """Memories with a job each; one of them takes back what an earlier text of it told."""
    jobs: list[Job] = []
    for number, (user_id, content, payload) in enumerate(TEXTS):
        memory_id = await insert_memory(database, workspace, content, user_id=user_id)
        if number in (2, 4):
            payload = payload | {"neighbours": [[str(jobs[0].memory_id), 0.9]], "hash": content_hash(content)}
        jobs.append(replace(job_for(workspace, memory_id, "enrich"), payload=payload))
    return jobs


async def test_together_they_get_what_each_gets_alone(
    database: Database, res: Resources, workspace: UUID, stranger: Tenant
) -> None:
    found = []
    for here in (workspace, stranger.workspace_id):
        jobs = await made(database, here)
        for again in range(2):
            if again:
                await rewrite(database, here, jobs[4].memory_id, "Priya Raman works at Brightwave Labs and met Zoe.")
            if here == workspace:
                await enrich.run_together(jobs, res)
            else:
                for job in jobs:
                    await enrich.run(job, res)
        found.append({name: await told_times(database, here, sql) for name, sql in EVERYTHING.items()})
    together, alone = found
    assert together == alone
    said = [(row[1], row[5]) for row in together["told"]]
    assert said == [
        ("knows", "she knows him"),
        ("lives_in", "Priya Raman lives in Lisbon."),
        ("lives_in", "Priya Raman lives in Lisbon."),
        ("works_at", "Priya Raman works at Brightwave Labs and met Zoe."),
        ("works_at", "Priya Raman works at Brightwave Labs."),
    ], "the rewritten one takes back what it told, whoever else says so too"
    assert together["edges"]


async def told_times(database: Database, workspace: UUID, sql: str) -> list[tuple[object, ...]]:
    """Rows, with moments left out: the two workspaces were filled one after the other."""
    rows = await fetch(database, workspace, sql)
    return [tuple(value for value in row if not isinstance(value, datetime)) for row in rows]


async def rewrite(database: Database, workspace: UUID, memory_id: UUID | None, content: str) -> None:
    async with database.begin(workspace) as session:
        await session.execute(
            text("UPDATE memory SET content = :content, hash = :hash, version = 2 WHERE id = :id"),
            {"content": content, "hash": content_hash(content), "id": memory_id},
        )


async def test_of_two_jobs_of_a_memory_the_later_one_counts(
    database: Database, res: Resources, workspace: UUID
) -> None:
    memory_id = await insert_memory(database, workspace, "she has a desk there now")
    job = job_for(workspace, memory_id, "enrich")
    await rewrite(database, workspace, memory_id, "she has a desk there")
    first, second = ([["Alice", "person"]], [["Carol", "person"]])
    await enrich.run_together([replace(job, payload={"entities": each}) for each in (first, second)], res)
    assert await names(database, workspace, memory_id) == {"Carol"}


async def test_one_that_changed_meanwhile_or_is_gone_leaves_the_others_alone(
    database: Database, res: Resources, workspace: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [await insert_memory(database, workspace, f"We met in {town}.") for town in ("Lisbon", "Porto", "Madrid")]
    loop = asyncio.get_running_loop()

    def find(found: str, known: dict[str, NamedEntity]) -> enrich.Findings:
        if "Porto" in found:
            changing = rewrite(database, workspace, ids[1], "We met in Vienna.")
            asyncio.run_coroutine_threadsafe(changing, loop).result(10)
        return original(found, known)

    original = enrich.find_by_rules
    monkeypatch.setattr(enrich, "find_by_rules", find)
    jobs = [job_for(workspace, each, "enrich") for each in (*ids, UUID(int=7), None)]
    await enrich.run_together(jobs, res)
    assert [await names(database, workspace, each) for each in ids] == [{"Lisbon"}, set(), {"Madrid"}]
    rows = await fetch(database, workspace, "SELECT id FROM memory WHERE enriched_at IS NULL")
    assert [row.id for row in rows] == [ids[1]]


async def test_a_name_that_one_of_them_brings_is_known_to_the_next(
    database: Database, res: Resources, workspace: UUID
) -> None:
    ids = [await insert_memory(database, workspace, each) for each in ("x", "we like quillfeather and nothing else")]
    told_by_model = {"entities": [["Quillfeather", "project"]]}
    jobs = [replace(job_for(workspace, ids[0], "enrich"), payload=told_by_model), job_for(workspace, ids[1], "enrich")]
    await enrich.run_together(jobs, res)
    assert await names(database, workspace, ids[1]) == {"Quillfeather"}


async def test_batches_that_meet_the_same_names_and_memories_never_wait_in_a_circle(
    database: Database, res: Resources, workspace: UUID
) -> None:
    towns = ("Lisbon", "Porto", "Madrid", "Vienna", "Berlin", "Oslo")
    texts = [f"Priya Raman lives in {towns[i % 6]}. We met in {towns[(i * 5 + 1) % 6]}." for i in range(24)]
    ids = [await insert_memory(database, workspace, each) for each in texts]
    jobs = []
    for number, memory_id in enumerate(ids):
        payload = {
            "hash": content_hash(texts[number]),
            "neighbours": [[str(ids[(number * 7 + 3) % 24]), 0.9], [str(ids[(number * 11 + 5) % 24]), 0.8]],
            "entities": [[towns[(number * 5 + 2) % 6], "place"], ["Priya Raman", "person"]],
        }
        jobs.append(replace(job_for(workspace, memory_id, "enrich"), payload=payload))
    batches = [jobs[:8], jobs[8:16][::-1], jobs[16:], jobs[4:20], jobs[::-3], jobs[::4]]
    await asyncio.gather(*(enrich_like_queue(batch, res) for batch in batches))
    found = await fetch(database, workspace, "SELECT name_key, count(*) FROM entity GROUP BY 1")
    assert {row[1] for row in found} == {1}
    assert await fetch(database, workspace, "SELECT id FROM memory WHERE enriched_at IS NULL") == []
