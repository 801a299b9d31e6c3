"""The doctor finds nothing in a database that is whole, and each kind of damage in one that was damaged on purpose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]
import pytest

from bench.superuser import login_url
from service.kit.settings import Settings
from service.postgres import doctor, migrate
from service.postgres.roles import APP, OWNER
from service.runtime.statements import generations
from tests.conftest import DIMENSION
from tests.fakes.embedder import AngleEmbedder
from tests.support.databases import new_database

ROOT = Path(__file__).parents[2]

# $W: the workspace, $O: another one, $M: a memory, $C: a conversation, $T: its turn, $E, $F: entities, $G: a goal,
# $S: a strategy, $J: a job, $P: an operation
WHOLE = """
INSERT INTO workspace (workspace_id, name) VALUES ('$W', 'a'), ('$O', 'b');
INSERT INTO memory (workspace_id, id, user_id, content, hash, dedup_key, type, type_confidence, classification_source,
    importance, importance_level, "timestamp", embedding_status, created_at, updated_at, enriched_at)
SELECT '$W', id::uuid, 'ann', content, md5(content), md5(content), 'Context', 0.5, 'rules', 0.5, 5, now(), 'stored',
    now(), now(), now() FROM (VALUES ('$M', 'Rows a boat.'), ('$N', 'Has a dog.')) AS m (id, content);
INSERT INTO memory_stat (workspace_id, memory_id, last_accessed)
SELECT '$W', id, now() FROM memory WHERE workspace_id = '$W';
INSERT INTO memory_history (workspace_id, id, memory_id, event, new_memory)
SELECT '$W', id, id, 'ADD', content FROM memory WHERE workspace_id = '$W';
INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, embedding)
SELECT '$W', id, 1, 'text', 'ann', array_fill(0.1, ARRAY[$D])::halfvec($D) FROM memory WHERE workspace_id = '$W';
INSERT INTO conversation (workspace_id, id, user_id, external_id, started_at, turn_count)
VALUES ('$W', '$C', 'ann', 'talk', now(), 1);
INSERT INTO turn (workspace_id, id, conversation_id, turn_index, user_id, run_id, role, content, content_hash,
    "timestamp")
VALUES ('$W', '$T', '$C', 0, 'ann', 'talk', 'user', 'Hello.', 'abc', now());
INSERT INTO conversation_log (workspace_id, id, conversation_id, turn_id, turn_index, "timestamp", role, content,
    content_hash)
VALUES ('$W', '$T', '$C', '$T', 0, now(), 'user', 'Hello.', 'abc');
INSERT INTO turn_vector (workspace_id, turn_id, generation, user_id, run_id, embedding)
VALUES ('$W', '$T', 1, 'ann', 'talk', array_fill(0.1, ARRAY[$D])::halfvec($D));
INSERT INTO entity (workspace_id, id, user_id, name, name_key, type, extracted_by)
VALUES ('$W', '$E', 'ann', 'Zoe', 'zoe', 'person', 'rules'),
       ('$W', '$F', 'ann', 'Oslo', 'oslo', 'place', 'rules');
INSERT INTO entity_alias (workspace_id, entity_id, alias_key, alias, user_id) VALUES ('$W', '$E', 'z', 'Z', 'ann');
INSERT INTO entity_edge (workspace_id, id, source_id, rel_type, label, target_id, extracted_by)
VALUES ('$W', '$E', '$E', 'LIVES_IN', 'lives in', '$F', 'rules');
INSERT INTO entity_edge_source (workspace_id, edge_id, memory_id, extracted_by) VALUES ('$W', '$E', '$M', 'rules');
INSERT INTO goal (workspace_id, id, description, updated_at) VALUES ('$W', '$G', 'Row home', now());
INSERT INTO strategy (workspace_id, id, description, tool_sequence) VALUES ('$W', '$S', 'Row', '{oar}');
INSERT INTO tool_invocation (workspace_id, tool_name, tool_input, success) VALUES ('$W', 'oar', '{}', true);
INSERT INTO operation (workspace_id, id, kind, state) VALUES ('$W', '$P', 'record', 'running');
INSERT INTO job (workspace_id, id, kind, payload, state, max_attempts, attempts, worker, lease_until, started_at)
VALUES ('$W', '$J', 'ingest', '{"operation_id": "$P"}', 'running', 3, 1, 'w', now(), now());
INSERT INTO idempotency (workspace_id, key, fingerprint, status, body, expires_at)
VALUES ('$W', 'k', 'f', 201, '{"results": [{"id": "$M", "event": "ADD"}]}', now() + interval '1 day');
"""

DAMAGE: Mapping[str, str] = {
    "memory-added": "UPDATE memory_history SET event = 'UPDATE' WHERE memory_id = '$M'",
    "memory-added-once": "INSERT INTO memory_history (workspace_id, id, memory_id, event) "
    "VALUES ('$W', '$J', '$M', 'ADD')",
    "memory-history-chain": "UPDATE memory_history SET recorded_to = now() WHERE memory_id = '$M'",
    "feed-order": "INSERT INTO memory_history (workspace_id, id, memory_id, event) "
    "VALUES ('$W', '$J', '$M', 'UPDATE'); UPDATE memory_history SET position = 0 WHERE id = '$J'",
    "feed-ahead": "UPDATE memory_history SET position = 1000000000000 WHERE memory_id = '$M'",
    "memory-lost": "DELETE FROM memory WHERE id = '$M'",
    "memory-deleted-visible": "UPDATE memory_history SET event = 'DELETE' WHERE memory_id = '$M'",
    "memory-stat": "UPDATE memory_stat SET salience = 1.2 WHERE memory_id = '$M'",
    "memory-hash": "UPDATE memory SET content = 'Rows a raft.' WHERE id = '$M'",
    "memory-vector": "DELETE FROM memory_vector WHERE memory_id = '$M'",
    "memory-vector-outdated": "UPDATE memory SET embedding_status = 'queued' WHERE id = '$M'",
    "memory-vector-job": "UPDATE memory SET embedding_status = 'queued' WHERE id = '$M'",
    "memory-enrich-job": "UPDATE memory SET enriched_at = NULL WHERE id = '$M'",
    "memory-vector-scope": "UPDATE memory_vector SET user_id = 'bob' WHERE memory_id = '$M'",
    "version-current": "UPDATE memory SET version_of = '$N' WHERE id = '$M'; "
    "UPDATE memory SET version_of = '$M' WHERE id = '$N'",
    "version-hidden": "UPDATE memory SET version_of = '$N' WHERE id = '$M'",
    "superseded": 'INSERT INTO withdrawn_span (workspace_id, id, turn_id, start, "end", reason, memory_id, '
    "replaced_by) VALUES ('$W', '$J', '$T', 0, 1, 'superseded', '$M', '$J')",
    "conversation-turn-count": "UPDATE conversation SET turn_count = 0 WHERE id = '$C'",
    "conversation-read": "UPDATE conversation SET consolidated_turns = 2 WHERE id = '$C'",
    "turn-scope": "UPDATE turn_vector SET user_id = 'bob' WHERE turn_id = '$T'",
    "turn-log": "UPDATE conversation_log SET content_hash = 'other' WHERE turn_id = '$T'",
    "turn-vector": "DELETE FROM turn_vector WHERE turn_id = '$T'",
    "entity-aliases": "UPDATE entity_alias SET channel = 'side' WHERE entity_id = '$E'",
    "entity-relation-source": "INSERT INTO entity_edge (workspace_id, id, source_id, rel_type, label, target_id, "
    "extracted_by) VALUES ('$W', '$F', '$F', 'KNOWS', 'knows', '$E', 'rules')",
    "job-lease": "UPDATE job SET lease_until = NULL WHERE id = '$J'",
    "job-finished": "UPDATE job SET state = 'done', lease_until = NULL WHERE id = '$J'",
    "operation-job": "DELETE FROM job WHERE id = '$J'",
    "operation-answer": "UPDATE operation SET state = 'failed', finished_at = now() WHERE id = '$P'",
    "idempotency-answer": "UPDATE idempotency SET body = NULL WHERE workspace_id = '$W'",
    "idempotency-memory": "UPDATE idempotency SET body = jsonb_set(body, '{results,0,id}', '\"$J\"')",
    "other-workspace": "UPDATE job SET workspace_id = '$O', memory_id = '$M' WHERE id = '$J'",
    "workspace": "DELETE FROM workspace WHERE workspace_id = '$W'",
    "constraint-valid": "ALTER TABLE memory ADD CONSTRAINT ck_new CHECK (id IS NOT NULL) NOT VALID",
    "trigger-enabled": "ALTER TABLE job DISABLE TRIGGER ALL",
    "index-valid": "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ix_memory_user'::regclass",
    "generation-active": "UPDATE embedding_generation SET state = 'retired'",
    "generation-index": "DROP INDEX ix_memory_vector_hnsw_1",
    "partition-today": "DO $$ BEGIN EXECUTE format('ALTER TABLE audit_log_%s RENAME TO another', "
    "to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')); END $$",
    "partition-default": "INSERT INTO audit_log (workspace_id, recorded_at, id, operation) "
    "VALUES ('$W', '2001-01-01', '$J', 'store')",
    "row-level-security": "ALTER TABLE turn NO FORCE ROW LEVEL SECURITY",
}
"""What breaks each check, by its name."""


@pytest.fixture(scope="module")
async def whole_url(owner_url: str, settings: Settings) -> str:
    """A database of its own, as its superuser: other tests write rows by hand."""
    url = await new_database(owner_url, "doctor")
    await migrate.upgrade_async(login_url(url, OWNER), settings)
    await generations.record_first(url, AngleEmbedder.model, DIMENSION)
    return url


@pytest.fixture
async def connection(whole_url: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    """In a transaction that is rolled back."""
    found = await asyncpg.connect(whole_url.replace("+asyncpg", ""))
    transaction = found.transaction()
    await transaction.start()
    yield found
    await transaction.rollback()
    await found.close()


class Names:
    """Fresh ids in place of the letters of a script."""

    def __init__(self) -> None:
        self._ids = {f"${letter}": str(uuid4()) for letter in "WOMNCTEFGSJP"} | {"$D": str(DIMENSION)}

    def put_into(self, script: str) -> str:
        for name, value in self._ids.items():
            script = script.replace(name, value)
        return script


async def broken(connection: asyncpg.Connection[Any]) -> set[str]:
    return {check.name for check in doctor.checks() if await connection.fetch(check.query)}


def test_each_check_has_its_damage() -> None:
    assert DAMAGE.keys() == {check.name for check in doctor.checks()}
    assert doctor.SCRIPT.read_text().count("\n-- check: ") == len(DAMAGE), "a check that is not read"


async def test_rows_that_are_whole_break_nothing(connection: asyncpg.Connection[Any]) -> None:
    await connection.execute(Names().put_into(WHOLE))
    assert await broken(connection) == set()


@pytest.mark.parametrize("name", DAMAGE)
async def test_damage_is_found(connection: asyncpg.Connection[Any], name: str) -> None:
    names = Names()
    await connection.execute(names.put_into(WHOLE))
    await connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    await connection.execute(names.put_into(DAMAGE[name]))
    (check,) = [check for check in doctor.checks() if check.name == name]
    assert await connection.fetch(check.query), check.rule


@pytest.mark.parametrize(("read", "is_whole"), [(-1, False), (0, True), (1, True), (2, False)])
async def test_facts_are_read_up_to_a_turn_that_is_there(
    connection: asyncpg.Connection[Any], read: int, *, is_whole: bool
) -> None:
    names = Names()
    await connection.execute(names.put_into(WHOLE))
    await connection.execute(names.put_into(f"UPDATE conversation SET consolidated_turns = {read} WHERE id = '$C'"))
    assert await broken(connection) == (set() if is_whole else {"conversation-read"})


def run(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("LOXODON_")}
    return subprocess.run(
        [sys.executable, "-m", "service", "doctor", *arguments],
        cwd=ROOT,
        env={**env, "DATABASE_URL": url.replace("+asyncpg", "")},
        capture_output=True,
        text=True,
        timeout=120,
    )


async def test_the_command_tells_people_and_programs(whole_url: str) -> None:
    owner = login_url(whole_url, OWNER)
    done = run(owner)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"all {len(DAMAGE)} checks hold" in done.stdout
    writer = await asyncpg.connect(whole_url.replace("+asyncpg", ""))
    workspaces = [uuid4() for _ in range(4)]
    orphan = (
        "INSERT INTO idempotency (workspace_id, key, fingerprint, status, expires_at) VALUES ($1, 'k', 'f', 200, now())"
    )
    try:
        await writer.executemany(orphan, [(each,) for each in workspaces])
        done = run(owner, "--json", "--examples", "2")
        assert done.returncode == 1
        found = json.loads(done.stdout)
        assert not found["whole"]
        named = {each["name"]: each for each in found["checks"]}
        assert named.keys() == DAMAGE.keys()
        assert {name: each["broken"] for name, each in named.items() if each["broken"]} == {
            "idempotency-answer": 4,
            "workspace": 4,
        }
        examples = named["idempotency-answer"]["examples"]
        assert len(examples) == 2
        assert {each["workspace_id"] for each in examples} <= {str(each) for each in workspaces}
        done = run(owner)
        assert done.returncode == 1
        assert "4 broken" in done.stdout
        assert f"2 of {len(DAMAGE)} checks failed" in done.stdout
    finally:
        await writer.execute("DELETE FROM idempotency WHERE workspace_id = ANY ($1)", workspaces)
        await writer.close()


async def test_a_login_that_cannot_see_all_rows_is_refused(whole_url: str) -> None:
    done = run(login_url(whole_url, APP))
    assert done.returncode == 3
    assert "LOXODON_OWNER_DATABASE_URL" in done.stderr
    assert done.stdout == ""
