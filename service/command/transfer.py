"""The rows of one workspace as JSON, table by table, and back into a database.

Tables and columns come from each room's tables.sql, parents before children; tables that are left out are named below.
A line is a row without what the target assigns: its workspace, the number of its vectors' generation, its position in
the change feed. So two workspaces that hold the same have the same lines. Rows come in the order of their primary key,
text by code points.

The connection is asyncpg's own, in a transaction of the caller: rows are never parsed on their way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import ColumnClause, DateTime, Integer, TableClause, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from service.conversations.statements.turns import TURNS_OF
from service.domain.job import MAX_ATTEMPTS
from service.postgres.tables import TABLES, primary_key
from service.runtime.statements.generations import Generation

Connection = Any  # asyncpg has no types

LEFT_OUT: Mapping[str, str] = {
    "workspace": "its id, name and settings stand in the manifest",
    "api_key": "secrets do not travel: the target gives keys of its own",
    "erased_memory": "tells followers of the change feed what to forget; another database has a new feed",
    "webhook": "has a secret, and its receiver would get changes from two services",
    "webhook_delivery": "belongs to its webhook",
    "model_day": "what was spent at the old place",
    "llm_cache": "answers that can be asked for again",
    "embedding_cache": "vectors that can be made again",
}
"""Tables of a workspace that are not exported, with the reason."""

PAGE = 500
"""Rows fetched at once. With vectors a row is some 10 kB."""

UNFINISHED_JOBS = "t.state IN ('ready', 'running', 'dead')"

# Values that replace columns. A running job starts again at the other place.
INSTEAD: Mapping[tuple[str, str], str] = {
    ("job", "state"): "CASE t.state WHEN 'running' THEN 'ready' ELSE t.state END",
    ("job", "worker"): "CASE t.state WHEN 'dead' THEN t.worker END",
    ("job", "lease_until"): "NULL::timestamptz",
    ("job", "attempts"): "CASE t.state WHEN 'running' THEN greatest(t.attempts - 1, 0) ELSE t.attempts END",
}

GIVEN = frozenset({"workspace_id", "generation", "before_generation", "position", "memory_history.seq"})
"""Columns that the target fills in. A position in the change feed, for example, is one of its transaction numbers."""

OWN = {"memory": ("version_of",)}
"""Columns that refer to a row of the same table, which has to be written first."""

NUMBERED = {"tool_invocation": "id", "working_item": "seq"}
"""Columns that a sequence numbers; its name is the table's with `_seq`."""

ACTIVE = "SELECT generation, model, dimension FROM embedding_generation WHERE state = 'active'"
WORKSPACE = "SELECT workspace_id, name, settings::text FROM workspace WHERE workspace_id = $1"
ADD_SETTINGS = "UPDATE workspace SET settings = $2::jsonb || settings WHERE workspace_id = $1"
SIZE = """
    SELECT (SELECT count(*) FROM memory WHERE workspace_id = $1) AS memories,
           (SELECT count(*) FROM conversation WHERE workspace_id = $1) AS conversations,
           (SELECT created_at FROM workspace WHERE workspace_id = $1) AS created_at
"""
WORKSPACES = "SELECT workspace_id FROM find_workspaces() ORDER BY 1"
PARTITIONS = "SELECT ensure_partitions(now() + interval '7 days')"

# The names of jobs without vectors: of memories, and of the turns of a conversation (upkeep/jobs/embed.py).
EMBED_LATER = f"""
    INSERT INTO job (workspace_id, id, kind, memory_id, payload, max_attempts)
    SELECT $1, gen_random_uuid(), 'embed', late.memory_id, '{{}}'::jsonb, {MAX_ATTEMPTS} FROM (
        SELECT m.id AS memory_id FROM memory m WHERE m.workspace_id = $1 AND m.embedding_status <> 'stored'
        EXCEPT SELECT j.memory_id FROM job j WHERE j.workspace_id = $1 AND j.kind = 'embed') late
    UNION ALL
    SELECT $1, gen_random_uuid(), 'embed', NULL, jsonb_build_object('{TURNS_OF}', c.id), {MAX_ATTEMPTS}
    FROM conversation c WHERE c.workspace_id = $1 AND EXISTS (
        SELECT FROM turn t WHERE t.workspace_id = c.workspace_id AND t.conversation_id = c.id
            AND t.shown IS DISTINCT FROM '' AND NOT EXISTS (
                SELECT FROM turn_vector v WHERE v.workspace_id = t.workspace_id AND v.turn_id = t.id))
"""


@cache
def tables() -> tuple[TableClause, ...]:
    """All tables that travel, parents before children."""
    return tuple(table for table in TABLES.values() if "workspace_id" in table.c and table.name not in LEFT_OUT)


def columns(table: TableClause) -> list[str]:
    """The columns in the lines of a table."""
    return [column.name for column in table.c if not is_given(column)]


def is_given(column: ColumnClause[Any]) -> bool:
    """Whether the target fills in the column."""
    return column.name in GIVEN or str(column) in GIVEN


def is_vectors(table: TableClause) -> bool:
    return "generation" in table.c


@cache
def _select(table: TableClause, *, with_vectors: bool) -> str:
    """`$1` is the workspace, `$2` the generation whose vectors travel."""
    own = [column for column in table.c if not is_given(column)]
    shown = [f'{_select_shown(table.name, column, with_vectors=with_vectors)} AS "{column.name}"' for column in own]
    nulls = [
        f"CASE WHEN t.\"{column.name}\" = 'null' THEN '{column.name}' END"
        for column in own
        if isinstance(column.type, JSONB)
    ]
    if nulls:  # a column that holds the JSON null is another thing than an empty one
        shown.append(f"nullif(array_remove(ARRAY[{', '.join(nulls)}], NULL), '{{}}') AS json_null")
    where = ["t.workspace_id = $1", "$2::smallint IS NOT NULL"]
    where += ["t.generation = $2"] if is_vectors(table) else []
    where += [UNFINISHED_JOBS] if table.name == "job" else []
    return (
        f"SELECT row_to_json(line)::text FROM {table.name} t CROSS JOIN LATERAL (SELECT {', '.join(shown)}) line "
        f"WHERE {' AND '.join(where)} ORDER BY {', '.join(_order(table))}"
    )


def _select_shown(table: str, column: ColumnClause[Any], *, with_vectors: bool) -> str:
    if (table, column.name) in INSTEAD:
        return INSTEAD[table, column.name]
    if column.name == "before_embedding":
        return "CASE WHEN t.before_generation = $2 THEN t.before_embedding END" if with_vectors else "NULL::halfvec"
    if column.name == "embedding_status" and not with_vectors:
        return "'queued'::text"
    return f't."{column.name}"'


def _order(table: TableClause) -> list[str]:
    parents = [f'(t."{name}" IS NOT NULL), t."{name}"' for name in OWN.get(table.name, ())]
    keys = [table.c[name] for name in primary_key(table.name) if name not in GIVEN]
    return [*parents, *(f't."{key.name}"{_collation(key)}' for key in keys)]


def _collation(column: ColumnClause[Any]) -> str:
    return "" if isinstance(column.type, Uuid | Integer | DateTime) else ' COLLATE "C"'


@cache
def insert(name: str, columns: tuple[str, ...], *, with_vectors: bool) -> str:
    """Adds the lines of a JSON array. `$1` is the workspace, `$2` the array, `$3` the generation of its vectors.
    Without RETURNING, Citus would copy the rows into the table, which row-level security refuses."""
    table = TABLES[name]
    values = {column: _value(table.c[column], with_vectors=with_vectors) for column in columns}
    if "generation" in table.c:
        values["generation"] = "$3::smallint"
    if "before_generation" in table.c:
        known = "CASE WHEN r.before_embedding IS NOT NULL THEN $3::smallint END"
        values["before_generation"] = known if with_vectors else "NULL::smallint"
    names = ", ".join(f'"{column}"' for column in values)
    return (
        f"INSERT INTO {name} (workspace_id, {names}) SELECT $1, {', '.join(values.values())} "
        "FROM json_array_elements($2::json) AS e (line) "
        f"CROSS JOIN LATERAL json_populate_record(NULL::{name}, e.line) AS r WHERE $3::smallint IS NOT NULL RETURNING 1"
    )


def _value(column: ColumnClause[Any], *, with_vectors: bool) -> str:
    if isinstance(column.type, JSONB):
        null = f"(e.line -> 'json_null')::jsonb ? '{column.name}'"
        return f"CASE WHEN {null} THEN 'null'::jsonb ELSE r.\"{column.name}\" END"
    if not with_vectors and column.name == "embedding_status":
        return "'queued'"
    if not with_vectors and isinstance(column.type, HALFVEC):
        return "NULL::halfvec"
    return f'r."{column.name}"'


async def lines(
    connection: Connection, table: TableClause, workspace_id: UUID, generation: int, *, with_vectors: bool
) -> AsyncIterator[str]:
    """The rows of a workspace, each a JSON object on one line, a page in memory at a time."""
    statement = _select(table, with_vectors=with_vectors)
    async for row in connection.cursor(statement, workspace_id, generation, prefetch=PAGE):
        yield row[0]


async def active(connection: Connection) -> Generation:
    """The generation that searches use."""
    return Generation(*await connection.fetchrow(ACTIVE))


async def find_filled_table(connection: Connection, workspace_id: UUID) -> str | None:
    """A table of a workspace in which there is something already; None for an empty workspace. What the workspace
    has audited does not count, nor what jobs have counted."""
    for table in tables():
        if table.name in {"audit_log", "operation", "job", "idempotency", "term_stat"}:
            continue
        if await connection.fetchval(f"SELECT EXISTS (SELECT FROM {table.name} WHERE workspace_id = $1)", workspace_id):
            return table.name
    return None


async def raise_sequences(connection: Connection, workspace_id: UUID) -> None:
    """Lets the next numbers of all sequences follow those that were written. nextval() is what the worker may call."""
    for table, column in NUMBERED.items():
        number = f"nextval('{table}_seq')"
        highest = await connection.fetchval(f"SELECT max({column}) FROM {table} WHERE workspace_id = $1", workspace_id)
        reached = 0 if highest is None else await connection.fetchval(f"SELECT {number}")
        while highest is not None and reached < highest:
            step = min(highest - reached, 100_000)
            reached = await connection.fetchval(f"SELECT max({number}) FROM generate_series(1, $1::bigint)", step)


def clash(error: Exception) -> str | None:
    """The message for an insert that the database refused; None for another error."""
    if isinstance(error, asyncpg.UniqueViolationError):
        return f"the target has a row with the same id already ({error.constraint_name}): {error.detail}"
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return f"the target refuses a row ({error.constraint_name})"
    return None
