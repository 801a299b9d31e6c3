"""A workspace with rows in every table that travels, in a database of its own; and commands against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import asyncpg  # type: ignore[import-untyped]
import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from bench.superuser import login_url
from service.command import cli, transfer
from service.kit.settings import Settings
from service.postgres import migrate
from service.postgres.roles import OWNER, WORKER
from service.runtime.resources import Resources
from service.runtime.statements import generations
from tests.conftest import DIMENSION, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.postgres.test_doctor import WHOLE, Names
from tests.support.application import serving
from tests.support.databases import new_database
from tests.support.listening import listening

# What the doctor's rows leave out, and what is hard to carry: a JSON null beside an empty column, quotes and line
# breaks, a past version whose id comes before that of its memory, times before the common era, numbers as they are.
MORE = """
UPDATE memory SET content = E'Says "no" \\\\ \\n twice \\u2028 \u00e9', tags = '{a,"b,c","d\\"e"}', terms = '{3,7}',
    t_valid = '-infinity', t_invalid = '9999-12-31 23:59:59.999999Z', bm25 = '{3:0.1,7:2}/1000000000',
    metadata = '{"n": 12345678901234567890.123456789, "deep": {"null": null}}',
    said_at = ARRAY['2020-01-01Z'::timestamptz] WHERE id = '$M';
UPDATE memory SET hash = md5(content) WHERE id = '$M';
INSERT INTO memory (workspace_id, id, user_id, content, hash, type, type_confidence, classification_source, importance,
    importance_level, "timestamp", embedding_status, created_at, updated_at, enriched_at, version_of, archived,
    t_invalid)
VALUES ('$W', '00000000-0000-0000-0000-000000000001', 'ann', 'Rowed.', md5('Rowed.'), 'Context', 0.1, 'rules', 0.1, 1,
    '2001-02-03', 'stored', now(), now(), now(), '$M', true, '2001-02-04');
INSERT INTO memory_stat (workspace_id, memory_id, last_accessed, confidence)
VALUES ('$W', '00000000-0000-0000-0000-000000000001', now(), 0.1::float4);
INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, embedding)
VALUES ('$W', '00000000-0000-0000-0000-000000000001', 1, 'text', 'ann', array_fill(1.0/3, ARRAY[$D])::halfvec($D));
INSERT INTO memory_history (workspace_id, id, memory_id, event, new_memory)
VALUES ('$W', '$J', '00000000-0000-0000-0000-000000000001', 'ADD', 'Rowed.');
INSERT INTO memory_history (workspace_id, id, memory_id, event, before, before_embedding, before_generation,
    recorded_at)
VALUES ('$W', '$P', '$M', 'UPDATE', '{"content": "Rows."}', array_fill(0.2, ARRAY[$D])::halfvec($D), 1,
    clock_timestamp());
UPDATE memory_history h SET recorded_to = n.recorded_at FROM memory_history n
    WHERE n.workspace_id = '$W' AND n.id = '$P' AND h.workspace_id = '$W' AND h.memory_id = '$M' AND h.event = 'ADD';
INSERT INTO memory_edge (workspace_id, source_id, rel_type, target_id) VALUES ('$W', '$M', 'RELATES_TO', '$N');
INSERT INTO memory_entity (workspace_id, memory_id, entity_id) VALUES ('$W', '$M', '$E');
INSERT INTO memory_source (workspace_id, memory_id, turn_id, start, "end") VALUES ('$W', '$M', '$T', 0, 3);
INSERT INTO withdrawn_span (workspace_id, id, turn_id, start, "end", reason) VALUES ('$W', '$J', '$T', 0, 1, 'expired');
INSERT INTO user_profile (workspace_id, user_id, preferences) VALUES ('$W', 'ann', '{"tea": true}'), ('$W', 'Ñ', '{}');
INSERT INTO working_item (workspace_id, session_id, kind, key, conversation_id, value, last_used_at, expires_at)
VALUES ('$W', '$J', 'item', 'k', 'talk', 'null', now(), now() + interval '1 hour');
INSERT INTO entity_vector (workspace_id, entity_id, generation, embedding)
VALUES ('$W', '$E', 1, array_fill(0.3, ARRAY[$D])::halfvec($D));
INSERT INTO goal (workspace_id, id, description, updated_at) VALUES ('$W', '$P', 'Row', now());
INSERT INTO goal_edge (workspace_id, source_id, rel_type, target_id) VALUES ('$W', '$P', 'SUBGOAL_OF', '$G');
INSERT INTO goal_memory (workspace_id, goal_id, memory_id) VALUES ('$W', '$G', '$M');
INSERT INTO goal_vector (workspace_id, goal_id, generation, embedding)
VALUES ('$W', '$G', 1, array_fill(0.4, ARRAY[$D])::halfvec($D));
INSERT INTO strategy_conversation (workspace_id, strategy_id, conversation_id, success) VALUES ('$W', '$S', '$C', true);
INSERT INTO strategy_vector (workspace_id, strategy_id, generation, embedding)
VALUES ('$W', '$S', 1, array_fill(0.5, ARRAY[$D])::halfvec($D));
INSERT INTO term_stat (workspace_id, term, texts, contexts) VALUES ('$W', 0, 2, 0);
INSERT INTO tool_invocation (workspace_id, id, tool_name, tool_input, tool_output, success)
VALUES ('$W', nextval('tool_invocation_seq'), 'oar', 'null', 'null', true),
    ('$W', nextval('tool_invocation_seq') + 250000, 'oar', '"null"', NULL, false);
INSERT INTO decision (workspace_id, id, source, model, verdict, state, event, candidates)
VALUES ('$W', '$J', 'rules', 'r', '{}', 'applied', 'NONE', '[{"a": 1e2}]');
INSERT INTO review (workspace_id, id, memory_id, contradicts) VALUES ('$W', '$J', '$M', '{}');
INSERT INTO audit_log (workspace_id, id, operation, affected_ids) VALUES ('$W', '$J', 'store', ARRAY['$M'::uuid]);
"""


@dataclass(frozen=True)
class Moving:
    """A database with a full workspace. `url`: its superuser's; `as_worker`, `as_owner`: of the logins."""

    url: str
    full: UUID

    @property
    def as_worker(self) -> str:
        return login_url(self.url, WORKER)

    @property
    def as_owner(self) -> str:
        return login_url(self.url, OWNER)

    async def run(self, statement: str, *values: Any) -> list[Any]:
        connection = await asyncpg.connect(self.url.replace("+asyncpg", ""))
        try:
            found: list[Any] = await connection.fetch(statement, *values)
            return found
        finally:
            await connection.close()

    async def empty(self) -> UUID:
        """A new workspace."""
        made = uuid4()
        await self.run("INSERT INTO workspace (workspace_id, name) VALUES ($1, $2)", made, f"empty {made}")
        return made

    async def contents(self, workspace_id: UUID) -> dict[str, list[str]]:
        """Every row of the tables that travel, as Postgres itself writes it, but for what the target fills in: the
        workspace and the place in the change feed."""
        found = {}
        for name in sorted(each.name for each in transfer.tables()):
            place = "{position,seq}" if name == "memory_history" else "{}"
            rows = await self.run(
                f"SELECT replace((to_jsonb(t) - '{place}'::text[])::text, $2, '') FROM {name} t "
                "WHERE workspace_id = $1 ORDER BY 1",
                workspace_id,
                str(workspace_id),
            )
            found[name] = [row[0] for row in rows]
        return found


@pytest.fixture(scope="session")
async def moving(owner_url: str, settings: Settings) -> Moving:
    url = await new_database(owner_url, "moving")
    await migrate.upgrade_async(login_url(url, OWNER), settings)
    await generations.record_first(url, AngleEmbedder.model, DIMENSION)
    names = Names()
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    await connection.execute(names.put_into(WHOLE))
    await connection.execute(names.put_into(MORE))
    await connection.close()
    made = Moving(url, UUID(names.put_into("$W")))
    counts = {name: len(rows) for name, rows in (await made.contents(made.full)).items()}
    assert all(counts.values()), f"no row of {[name for name, count in counts.items() if not count]}"
    return made


Run = Callable[..., Awaitable[Result]]


@pytest.fixture
async def run(resources: Resources, tenant: Tenant) -> AsyncIterator[Run]:
    """Runs a command with the tenant's key, and returns what it printed."""
    with capture_logs():  # the server's, in this process, would stand between the lines of the command
        async with serving(resources) as app, listening(app) as (host, port):

            async def call(*words: str, **env: str) -> Result:
                known = {"LOXODON_URL": f"http://{host}:{port}", "LOXODON_API_KEY": tenant.key, **env}
                return await asyncio.to_thread(CliRunner(env=known).invoke, cli.app, list(words))

            yield call
