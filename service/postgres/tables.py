"""The schema's files, in the order in which they run in an empty database, and the tables in them for SQLAlchemy.

A room keeps its tables in tables.sql and its functions in functions/; what holds for all tables lies in postgres/sql.
SQLAlchemy's expressions need no more than the names and types of the columns. Keys, constraints, defaults and indexes
are in the SQL files only; columns that Postgres generates are left out, since nobody writes them. Every tenant table
starts its primary key with `workspace_id` and is under forced row-level security.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection
from functools import cache, partial
from pathlib import Path
from typing import Any

from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import (
    BigInteger,
    Boolean,
    Date,
    DateTime,
    Double,
    Integer,
    SmallInteger,
    String,
    TableClause,
    Text,
    TextClause,
    Uuid,
    bindparam,
    column,
    table,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.types import TypeEngine

from service.postgres.vectors import Half

SERVICE = Path(__file__).resolve().parents[1]
SQL = SERVICE / "postgres" / "sql"

ROOMS = ("access", "runtime", "memories", "conversations", "graph", "cognition", "working", "queue", "feed")
"""The rooms with tables, in the order of their foreign keys."""

TABLE_FILES = (*(SERVICE / room / "tables.sql" for room in ROOMS), SQL / "migrations.sql")
FUNCTION_FILES = tuple(
    sorted([*SERVICE.glob("*/functions/*.sql"), *SQL.glob("functions/*.sql")], key=lambda file: file.name)
)
RULE_FILES = tuple(
    SQL / f"{name}.sql" for name in ("triggers", "policies", "grants", "walls", "partitions", "statistics")
)

# functions are made before the tables they read, and only those who are granted them may call them
HEADER = """SET LOCAL check_function_bodies = off;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
"""


def schema_script() -> str:
    """The statements that make the schema, for one transaction. `:dimension` and `:partitions` are left open, as psql
    variables."""
    return "\n".join([HEADER, *(file.read_text() for file in (*FUNCTION_FILES, *TABLE_FILES, *RULE_FILES))])


def schema_fingerprint() -> str:
    """Tells two states of the files apart, but for comments and white space."""
    return hashlib.sha256(" ".join(re.sub(r"--.*", "", schema_script()).split()).encode()).hexdigest()


TYPES: dict[str, Callable[..., TypeEngine[Any]]] = {
    "bigint": BigInteger,
    "boolean": Boolean,
    "date": Date,
    "double precision": Double,
    "halfvec": Half,
    "integer": Integer,
    "jsonb": JSONB,
    "smallint": SmallInteger,
    "sparsevec": SPARSEVEC,
    "text": Text,
    "timestamptz": partial(DateTime, timezone=True),
    "uuid": Uuid,
    "varchar": String,
}

CONVERTED = (Half, JSONB, SPARSEVEC)
"""Types whose values the driver does not take as they are."""

TABLE = re.compile(r"^CREATE (?:UNLOGGED )?TABLE (\w+) \(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
COLUMN = re.compile(r'^    "?([a-z]\w*)"? ([a-z]+(?: precision)?)(?:\((\d+)\))?(\[\])?(.*)$', re.MULTILINE)


def primary_key(name: str) -> tuple[str, ...]:
    """The columns of a table's primary key, where the table has `workspace_id`."""
    match = re.search(r"PRIMARY KEY \((.*)\)", DEFINITIONS[name])
    assert match is not None, f"{name} has its key elsewhere"
    return tuple(match[1].split(", "))


def _table(name: str, definition: str) -> TableClause:
    columns = [
        column(column_name, _type(kind, length, is_array=bool(array)))
        for column_name, kind, length, array, rest in COLUMN.findall(definition)
        if "GENERATED ALWAYS" not in rest
    ]
    return table(name, *columns)


@cache
def _type(kind: str, length: str, *, is_array: bool) -> TypeEngine[Any]:
    made = TYPES[kind](int(length)) if length else TYPES[kind]()
    return ARRAY(made) if is_array else made


DEFINITIONS = {name: text for file in TABLE_FILES for name, text in TABLE.findall(file.read_text())}
"""The text between the parentheses of CREATE TABLE, by the name of the table, parents before their children."""

TABLES = {name: _table(name, text) for name, text in DEFINITIONS.items()}


def insert_into(name: str, *, by_default: Collection[str] = (), **renamed: str) -> TextClause:
    """INSERT of a row with every column of the table but those `by_default`. Its parameters have the names of the
    columns, some of them `renamed`."""
    written = [(each, renamed.get(each.name, each.name)) for each in TABLES[name].c if each.name not in by_default]
    columns = ", ".join(f'"{each.name}"' for each, _ in written)
    values = ", ".join(f":{value}" for _, value in written)
    typed = [bindparam(value, type_=each.type) for each, value in written if isinstance(each.type, CONVERTED)]
    return text(f"INSERT INTO {name} ({columns}) VALUES ({values})").bindparams(*typed)  # noqa: S608 - no user input


API_KEY = TABLES["api_key"]
AUDIT_LOG = TABLES["audit_log"]
CONVERSATION = TABLES["conversation"]
EMBEDDING_CACHE = TABLES["embedding_cache"]
EMBEDDING_GENERATION = TABLES["embedding_generation"]
ENTITY = TABLES["entity"]
ENTITY_VECTOR = TABLES["entity_vector"]
GOAL = TABLES["goal"]
GOAL_EDGE = TABLES["goal_edge"]
GOAL_MEMORY = TABLES["goal_memory"]
GOAL_VECTOR = TABLES["goal_vector"]
IDEMPOTENCY = TABLES["idempotency"]
MEMORY = TABLES["memory"]
MEMORY_EDGE = TABLES["memory_edge"]
MEMORY_HISTORY = TABLES["memory_history"]
MEMORY_STAT = TABLES["memory_stat"]
MEMORY_VECTOR = TABLES["memory_vector"]
OPERATION = TABLES["operation"]
REVIEW = TABLES["review"]
STRATEGY = TABLES["strategy"]
STRATEGY_CONVERSATION = TABLES["strategy_conversation"]
STRATEGY_VECTOR = TABLES["strategy_vector"]
TOOL_INVOCATION = TABLES["tool_invocation"]
TURN = TABLES["turn"]
TURN_VECTOR = TABLES["turn_vector"]
USER_PROFILE = TABLES["user_profile"]
WEBHOOK = TABLES["webhook"]
WEBHOOK_DELIVERY = TABLES["webhook_delivery"]
WORKSPACE = TABLES["workspace"]
