"""What each kind of job finds to do, and what a workspace looks like afterwards.

Every name of the registry has at least one case, made through the verbs that a request calls where they are quick
enough; `bulk` writes many whole memories at once. A case without words after its name is the name's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]

import service.erasure.forget_scope
from bench.job_worker import DIMENSION, AbsentLlm
from service.domain.draft import CallerFields, Draft, Options, Speech
from service.domain.job import JobName, NewJob
from service.domain.request import Call
from service.domain.scope import NIL_WORKSPACE, Extent, Scope
from service.intake import deferred
from service.intake.conversation import ConversationDraft
from service.intake.curate import curate
from service.intake.store import store
from service.memories.store import store_text
from service.queue.statements import queue
from service.runtime.resources import Resources

CALL = Call("job-chaos")
SAID = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
FACTS = (
    "Zoe Miller works at Acme in Oslo.",
    "Zoe Miller lives in Bergen.",
    "Tom Baker moved to Lisbon last year.",
    "My sister Anna likes pears.",
    "The red boats are sold in spring.",
    "The meeting with Tom Baker is on Monday.",
)
TALK = (
    "I live in Bergen.",
    "My sister is called Anna.",
    "I work at Acme as a baker.",
    "I like pears and plums.",
    "My dog is called Rex.",
)


@dataclass(frozen=True, slots=True)
class CaseWorkspace:
    """Where a case is prepared: a fresh workspace, the application's resources, and the superuser's connection."""

    workspace_id: UUID
    res: Resources
    tables: asyncpg.Connection[Any]

    @property
    def scope(self) -> Scope:
        return Scope(self.workspace_id, "ann")

    def draft(self, words: str, *, role: str | None = None, infer: bool = False) -> Draft:
        speech = Speech(role, timestamp=SAID) if role else None
        options = Options(record=role is not None and not infer)
        scope = replace(self.scope, run_id="talk") if role else self.scope
        return Draft(scope, words, CallerFields(timestamp=SAID), options, self.res.clock(), speech)

    async def stored(self, *texts: str) -> list[UUID]:
        outcomes = [await store_text(self.draft(each), self.res, CALL) for each in texts]
        return [each.memory_id for each in outcomes if each.memory_id]

    def talk(self, *, infer: bool) -> ConversationDraft:
        drafts = [self.draft(each, role="user", infer=infer) for each in TALK]
        return ConversationDraft(replace(self.scope, run_id="talk"), drafts, "talk", infer=infer)

    async def execute(self, statements: str) -> None:
        """As the superuser; $W is the workspace."""
        await self.tables.execute(statements.replace("$W", str(self.workspace_id)))

    async def enqueue(self, *jobs: NewJob) -> None:
        async with self.res.db.begin(self.workspace_id) as session:
            await queue.enqueue(session, jobs)

    async def request(self, name: JobName, *, system: bool = False) -> None:
        """A run, as the clock or POST /v1/jobs/{name}/run starts one."""
        workspace_id = NIL_WORKSPACE if system else self.workspace_id
        async with self.res.db.begin(workspace_id) as session:
            await queue.request_run(session, name)

    async def bulk(self, count: int) -> None:
        """So many whole memories of Ann's, enriched, last used twenty days ago."""
        await self.execute(BULK.replace("$N", str(count)))


BULK = f"""
WITH fresh AS (
    INSERT INTO memory (workspace_id, id, user_id, content, hash, dedup_key, type, type_confidence,
        classification_source, importance, importance_level, "timestamp", embedding_status, created_at, updated_at,
        enriched_at)
    SELECT '$W', gen_random_uuid(), 'ann', text, md5(text), md5(text), 'Context', 0.5, 'rules', 0.5, 5, now(),
        'stored', now(), now(), now()
    FROM (SELECT 'Crate ' || n || ' holds pears.' AS text FROM generate_series(1, $N) n) texts RETURNING *
), stat AS (
    INSERT INTO memory_stat (workspace_id, memory_id, last_accessed, base_salience, base_confidence)
    SELECT workspace_id, id, now() - interval '20 days', 0.9, 0.8 FROM fresh
), vector AS (
    INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, embedding)
    SELECT workspace_id, id, 1, 'text', user_id, array_fill(0.05, ARRAY[{DIMENSION}])::halfvec({DIMENSION}) FROM fresh
)
INSERT INTO memory_history (workspace_id, id, memory_id, event, new_memory, user_id)
SELECT workspace_id, gen_random_uuid(), id, 'ADD', content, user_id FROM fresh
"""


async def embed(place: CaseWorkspace) -> None:
    ids = await place.stored(*FACTS)
    await store(place.talk(infer=False), place.res, CALL)
    await place.execute(
        "UPDATE memory SET embedding_status = 'queued' WHERE workspace_id = '$W' AND conversation_id IS NULL; "
        "DELETE FROM memory_vector v USING memory m WHERE v.workspace_id = '$W' AND m.workspace_id = '$W' "
        "AND m.id = v.memory_id AND m.conversation_id IS NULL; DELETE FROM turn_vector WHERE workspace_id = '$W'"
    )
    talk = await place.tables.fetchval("SELECT id FROM conversation WHERE workspace_id = $1", place.workspace_id)
    await place.enqueue(*(NewJob("embed", memory_id=each, max_attempts=20) for each in ids))
    await place.enqueue(NewJob("embed", payload={"conversation_id": str(talk)}, max_attempts=20))


async def embed_sweep(place: CaseWorkspace) -> None:
    await place.stored(*FACTS)
    await place.execute(
        "UPDATE memory SET embedding_status = 'queued', updated_at = now() - interval '1 hour' "
        "WHERE workspace_id = '$W'; DELETE FROM memory_vector WHERE workspace_id = '$W'"
    )
    await place.request("embed", system=True)


async def enrich(place: CaseWorkspace) -> None:
    await place.stored(*FACTS)


async def ingest(place: CaseWorkspace) -> None:
    await deferred.accept(place.talk(infer=False), place.res, CALL)


async def ingest_infer(place: CaseWorkspace) -> None:
    await deferred.accept(place.talk(infer=True), place.res, CALL)


async def consolidate(place: CaseWorkspace) -> None:
    await curate(place.talk(infer=True), replace(place.res, llm=AbsentLlm()), CALL)
    await place.execute("UPDATE job SET run_after = now() WHERE workspace_id = '$W'")


async def forget_scope(place: CaseWorkspace) -> None:
    await place.bulk(200)
    await service.erasure.forget_scope.forget_scope(Extent(place.scope, None), place.res, CALL)


async def forget_scope_reset(place: CaseWorkspace) -> None:
    await place.stored(*FACTS)
    await store(place.talk(infer=False), place.res, CALL)
    await place.bulk(200)
    await service.erasure.forget_scope.empty_workspace(place.workspace_id, place.res, CALL)


async def relevance(place: CaseWorkspace) -> None:
    await place.bulk(300)
    await place.request("relevance")


async def decay(place: CaseWorkspace) -> None:
    await place.bulk(300)
    await place.execute(
        "INSERT INTO entity (workspace_id, id, user_id, name, name_key, type, extracted_by, first_seen) "
        "SELECT '$W', gen_random_uuid(), 'ann', 'Name ' || n, 'name ' || n, 'person', 'rules', "
        "now() - make_interval(days => n) FROM generate_series(1, 100) n"
    )
    await place.request("decay")


async def flag_stale(place: CaseWorkspace) -> None:
    await place.bulk(300)
    await place.execute(
        "UPDATE memory_stat s SET last_accessed = now() - interval '100 days' FROM memory m "
        "WHERE s.workspace_id = '$W' AND m.workspace_id = '$W' AND m.id = s.memory_id AND m.content LIKE 'Crate 1%'"
    )
    await place.request("flag_stale")


async def faded(place: CaseWorkspace) -> None:
    await place.bulk(150)
    await place.execute("UPDATE memory_stat SET relevance = 0.01 WHERE workspace_id = '$W'")
    await place.request("forget")


async def promote(place: CaseWorkspace) -> None:
    """Known in two sessions of a project and used often."""
    await place.bulk(30)
    await place.execute(
        "UPDATE memory SET channel = 'project', fact_confidence = 0.9, session_id = 'first' WHERE workspace_id = '$W'; "
        "UPDATE memory_vector SET channel = 'project' WHERE workspace_id = '$W'; "
        "UPDATE memory_stat SET access_count = 9, seen_in = '{second}' WHERE workspace_id = '$W'"
    )
    await place.request("promote")


async def patterns(place: CaseWorkspace) -> None:
    """Three tools in the same order in a dozen conversations, an hour ago."""
    await place.execute(
        "INSERT INTO conversation (workspace_id, id, user_id, external_id, started_at) "
        "SELECT '$W', gen_random_uuid(), 'ann', 'talk ' || n, now() FROM generate_series(1, 12) n; "
        "INSERT INTO tool (workspace_id, name, usage_count) "
        "SELECT '$W', 'tool ' || n, 12 FROM generate_series(1, 3) n; "
        "INSERT INTO tool_invocation (workspace_id, conversation_id, user_id, run_id, tool_name, task_type, "
        'tool_input, success, "timestamp") '
        "SELECT '$W', c.id, 'ann', c.external_id, 'tool ' || n, 'deploy', '{}', true, "
        "now() - interval '1 hour' + make_interval(secs => n) "
        "FROM conversation c CROSS JOIN generate_series(1, 3) n WHERE c.workspace_id = '$W'"
    )
    await place.request("patterns")


async def cleanup(place: CaseWorkspace) -> None:
    await place.bulk(150)
    await place.execute(
        "UPDATE memory SET expires_at = now() - interval '1 hour' WHERE workspace_id = '$W'; "
        "INSERT INTO idempotency (workspace_id, key, fingerprint, status, body, expires_at) "
        "SELECT '$W', 'key ' || n, 'f', 200, '{}', now() - interval '1 hour' FROM generate_series(1, 100) n; "
        "INSERT INTO job (workspace_id, id, kind, state, max_attempts, finished_at) "
        "SELECT '$W', gen_random_uuid(), 'enrich', 'done', 3, now() - interval '9 days' FROM generate_series(1, 100)"
    )
    await place.request("cleanup", system=True)


async def count_terms(place: CaseWorkspace) -> None:
    await place.stored(*FACTS)
    await place.request("count_terms", system=True)


async def sweep_working(place: CaseWorkspace) -> None:
    await place.execute(
        "INSERT INTO working_item (workspace_id, session_id, kind, key, conversation_id, value, last_used_at, "
        "expires_at) SELECT '$W', gen_random_uuid(), 'item', 'k', 'c', '1', now(), now() - interval '1 hour' "
        "FROM generate_series(1, 150)"
    )
    await place.request("sweep_working", system=True)


async def audit_partitions(place: CaseWorkspace) -> None:
    """A log lacks the day after tomorrow, and a row of a day far ahead lies in DEFAULT."""
    await place.execute(
        "DO $$ BEGIN EXECUTE 'DROP TABLE IF EXISTS audit_log_' "
        "|| to_char((now() + interval '2 days') AT TIME ZONE 'UTC', 'YYYYMMDD'); END $$; "
        "INSERT INTO audit_log (workspace_id, recorded_at, id, operation) "
        "VALUES ('$W', now() + interval '2 days', gen_random_uuid(), 'store')"
    )
    await place.request("audit_partitions", system=True)


async def vacuum(place: CaseWorkspace) -> None:
    await place.enqueue(NewJob("vacuum", max_attempts=20))


async def deliver_webhook(place: CaseWorkspace) -> None:
    """Of a change that was erased before it was sent: there is no receiver here, and nothing to send."""
    await place.execute(
        "INSERT INTO webhook (workspace_id, id, url, secret, position, seq) "
        "SELECT '$W', gen_random_uuid(), 'https://example.com/', 'whsec_Zm9v', 0, 0 FROM generate_series(1, 20); "
        "INSERT INTO webhook_delivery (workspace_id, id, webhook_id, position, seq, event, memory_id) "
        "SELECT workspace_id, gen_random_uuid(), id, 0, 1, 'memory.added', id FROM webhook WHERE workspace_id = '$W'; "
        "INSERT INTO job (workspace_id, id, kind, payload, max_attempts) "
        "SELECT workspace_id, gen_random_uuid(), 'deliver_webhook', jsonb_build_object('webhook_id', id), 20 "
        "FROM webhook WHERE workspace_id = '$W'"
    )


CASES: Mapping[str, Callable[[CaseWorkspace], Awaitable[None]]] = MappingProxyType(
    {
        "embed": embed,
        "embed sweep": embed_sweep,
        "enrich": enrich,
        "ingest": ingest,
        "ingest infer": ingest_infer,
        "consolidate": consolidate,
        "forget_scope": forget_scope,
        "forget_scope reset": forget_scope_reset,
        "relevance": relevance,
        "decay": decay,
        "flag_stale": flag_stale,
        "forget": faded,
        "promote": promote,
        "patterns": patterns,
        "cleanup": cleanup,
        "count_terms": count_terms,
        "sweep_working": sweep_working,
        "audit_partitions": audit_partitions,
        "vacuum": vacuum,
        "deliver_webhook": deliver_webhook,
    }
)
"""Each prepares a workspace and queues the jobs. The first word is the name of the job."""


# Ids and times differ from one workspace to the next, so texts stand for them. Of the jobs of another kind it counts
# those that wait; a job of the case itself is over.
STATE = """
WITH m AS (SELECT * FROM memory WHERE workspace_id = $1)
SELECT 'memory' AS what, concat_ws('|', m.content, m.user_id, m.run_id, m.archived, m.version_of IS NOT NULL,
    m.embedding_status, m.enriched_at IS NOT NULL, m.summary, m.version, m.t_valid, m.t_invalid) AS how FROM m
UNION ALL
SELECT 'stat', concat_ws('|', m.content, round(s.relevance::numeric, 2), round(s.salience::numeric, 2),
    s.stale_at IS NOT NULL, s.base_relevance, s.base_salience, s.base_confidence, s.access_count)
FROM m JOIN memory_stat s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id
UNION ALL
SELECT 'vector', concat_ws('|', m.content, v.kind, v.generation, md5(v.embedding::text))
FROM m JOIN memory_vector v ON v.workspace_id = m.workspace_id AND v.memory_id = m.id
UNION ALL
SELECT 'history', concat_ws('|', h.event, h.old_memory, h.new_memory) FROM memory_history h WHERE h.workspace_id = $1
UNION ALL
SELECT 'decision', concat_ws('|', d.event, d.source, d.state, d.verdict ->> 'reason')
FROM decision d WHERE d.workspace_id = $1
UNION ALL
SELECT 'audit', concat_ws('|', a.operation, cardinality(a.affected_ids)) FROM audit_log a WHERE a.workspace_id = $1
UNION ALL
SELECT 'edge', concat_ws('|', s.content, e.rel_type, t.content, round(e.strength::numeric, 2))
FROM memory_edge e JOIN m s ON s.id = e.source_id JOIN m t ON t.id = e.target_id WHERE e.workspace_id = $1
UNION ALL
SELECT 'entity', concat_ws('|', e.name, e.type, round(e.salience::numeric, 2))
FROM entity e WHERE e.workspace_id = $1
UNION ALL
SELECT 'alias', concat_ws('|', e.name, a.alias)
FROM entity_alias a JOIN entity e ON e.workspace_id = $1 AND e.id = a.entity_id WHERE a.workspace_id = $1
UNION ALL
SELECT 'mention', concat_ws('|', m.content, e.name, me.extracted_by)
FROM memory_entity me JOIN m ON m.id = me.memory_id JOIN entity e ON e.workspace_id = $1 AND e.id = me.entity_id
WHERE me.workspace_id = $1
UNION ALL
SELECT 'relation', concat_ws('|', s.name, e.rel_type, t.name, (SELECT count(*) FROM entity_edge_source x
    WHERE x.workspace_id = $1 AND x.edge_id = e.id))
FROM entity_edge e JOIN entity s ON s.workspace_id = $1 AND s.id = e.source_id
JOIN entity t ON t.workspace_id = $1 AND t.id = e.target_id WHERE e.workspace_id = $1
UNION ALL
SELECT 'conversation', concat_ws('|', external_id, turn_count, consolidated_at IS NOT NULL, archived,
    patterns_extracted)
FROM conversation WHERE workspace_id = $1
UNION ALL
SELECT 'turn', concat_ws('|', t.turn_index, t.content, t.shown, v.turn_id IS NOT NULL)
FROM turn t LEFT JOIN turn_vector v ON v.workspace_id = $1 AND v.turn_id = t.id WHERE t.workspace_id = $1
UNION ALL
SELECT 'source', concat_ws('|', m.content, t.turn_index, s.start, s."end")
FROM memory_source s JOIN m ON m.id = s.memory_id JOIN turn t ON t.workspace_id = $1 AND t.id = s.turn_id
WHERE s.workspace_id = $1
UNION ALL
SELECT 'log', content FROM conversation_log WHERE workspace_id = $1
UNION ALL
SELECT 'job', concat_ws('|', kind, state, reason) FROM job WHERE workspace_id = $1
UNION ALL
SELECT 'delivery', concat_ws('|', event, state, attempts) FROM webhook_delivery WHERE workspace_id = $1
UNION ALL
SELECT 'operation', concat_ws('|', kind, state, jsonb_array_length(result -> 'results'), result ->> 'deleted',
    error ->> 'code') FROM operation WHERE workspace_id = $1
UNION ALL
SELECT 'idempotency', concat_ws('|', status, jsonb_array_length(body -> 'results'))
FROM idempotency WHERE workspace_id = $1
UNION ALL
SELECT 'strategy', concat_ws('|', description, task_type, tool_sequence, success_count, failure_count, version)
FROM strategy WHERE workspace_id = $1
UNION ALL
SELECT 'lesson', concat_ws('|', s.description, c.external_id, l.success)
FROM strategy_conversation l JOIN strategy s ON s.workspace_id = $1 AND s.id = l.strategy_id
JOIN conversation c ON c.workspace_id = $1 AND c.id = l.conversation_id WHERE l.workspace_id = $1
UNION ALL
SELECT 'term', concat_ws('|', term, texts, contexts) FROM term_stat WHERE workspace_id = $1
UNION ALL
SELECT 'working', key FROM working_item WHERE workspace_id = $1
UNION ALL
SELECT 'partition', c.relname FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid WHERE c.relkind = 'r'
ORDER BY 1, 2
"""


async def state(place: CaseWorkspace) -> list[str]:
    """Everything that is in the workspace, in an order that does not depend on ids or times."""
    return [f"{row['what']}: {row['how']}" for row in await place.tables.fetch(STATE, place.workspace_id)]
