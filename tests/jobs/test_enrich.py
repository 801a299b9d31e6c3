"""Does a memory get its entities and its summary, once, and only those of the text it has?"""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest
from sqlalchemy import text

from service.db.engine import Database
from service.domain.entity import Named
from service.domain.text import content_hash
from service.jobs import enrich
from service.resources import Resources
from tests.jobs.conftest import fetch, insert_memory, job_for

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


async def test_running_twice_changes_nothing(database: Database, res: Resources, workspace: UUID) -> None:
    memory_id = await insert_memory(database, workspace, TEXT)
    await run(res, workspace, memory_id)
    before = await fetch(database, workspace, "SELECT id, name_key FROM entity ORDER BY id")
    await run(res, workspace, memory_id)
    assert await fetch(database, workspace, "SELECT id, name_key FROM entity ORDER BY id") == before
    assert len(await names(database, workspace, memory_id)) == len(before)


async def test_users_have_entities_of_their_own(database: Database, res: Resources, workspace: UUID) -> None:
    for user_id in ("alice", "bob", None):
        await run(res, workspace, await insert_memory(database, workspace, TEXT, user_id=user_id))
    found = await fetch(database, workspace, "SELECT user_id FROM entity WHERE name_key = 'lisbon'")
    assert {row.user_id for row in found} == {"alice", "bob", None}


async def test_many_at_once_make_each_entity_once(database: Database, res: Resources, workspace: UUID) -> None:
    towns = ("Lisbon", "Porto", "Madrid", "Vienna")
    texts = [f"We met in {' and '.join(towns[i % 4 :] + towns[: i % 4])} with Priya Raman." for i in range(16)]
    ids = [await insert_memory(database, workspace, each) for each in texts]
    await asyncio.gather(*(run(res, workspace, memory_id) for memory_id in ids))
    found = await fetch(database, workspace, "SELECT name_key, count(*) FROM entity GROUP BY name_key")
    assert {row[1] for row in found} == {1}
    assert {town.casefold() for town in towns} <= {row.name_key for row in found}


async def test_a_known_name_counts_in_any_case_and_by_its_alias(
    database: Database, res: Resources, workspace: UUID
) -> None:
    async with database.begin(workspace) as session:
        await session.execute(
            text(
                "INSERT INTO entity (workspace_id, id, user_id, name, name_key, type, aliases, extracted_by) VALUES "
                "(:workspace, gen_random_uuid(), 'alice', 'Quillfeather', 'quillfeather', 'project', '{QF}', 'caller')"
            ),
            {"workspace": workspace},
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
    await change(database, workspace, memory_id, "We met in Vienna.")
    await run(res, workspace, memory_id)
    assert await names(database, workspace, memory_id) == {"Vienna"}


async def change(database: Database, workspace: UUID, memory_id: UUID, content: str) -> None:
    async with database.begin(workspace) as session:
        await session.execute(
            text("UPDATE memory SET content = :content, hash = :hash WHERE id = :id"),
            {"content": content, "hash": content_hash(content), "id": memory_id},
        )


async def test_a_text_changed_meanwhile_gets_nothing_of_the_old_one(
    database: Database, res: Resources, workspace: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = await insert_memory(database, workspace, "We met in Lisbon.")
    loop = asyncio.get_running_loop()

    def find(found: str, known: dict[str, Named]) -> enrich.Findings:
        asyncio.run_coroutine_threadsafe(change(database, workspace, memory_id, "We met in Vienna."), loop).result(10)
        return original(found, known)

    original = enrich.find
    monkeypatch.setattr(enrich, "find", find)
    await run(res, workspace, memory_id)
    (row,) = await fetch(database, workspace, "SELECT summary, enriched_at FROM memory WHERE id = :id", id=memory_id)
    assert tuple(row) == (None, None)
    assert await names(database, workspace, memory_id) == set()


async def test_a_deleted_memory_is_no_error(res: Resources, workspace: UUID) -> None:
    await run(res, workspace, UUID(int=7))


async def test_a_second_attempt_shows_before_its_result(
    database: Database, res: Resources, workspace: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_text: str, _known: dict[str, Named]) -> enrich.Findings:
        raise KeyError

    memory_id = await insert_memory(database, workspace, TEXT)
    monkeypatch.setattr(enrich, "find", broken)
    with pytest.raises(KeyError):
        await run(res, workspace, memory_id, attempts=3)
    (row,) = await fetch(database, workspace, "SELECT * FROM memory WHERE id = :id", id=memory_id)
    assert (row.enrichment_attempts, row.enriched_at) == (3, None)
