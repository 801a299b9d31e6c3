"""The schema's files, in the order in which they run in an empty database: the only place where it is written down.

A room keeps its tables in tables.sql and its functions in functions/; what holds for all tables lies in postgres/sql.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

SERVICE = Path(__file__).resolve().parents[1]
SQL = SERVICE / "postgres" / "sql"

ROOMS = ("access", "runtime", "memories", "conversations", "graph", "cognition", "working", "queue", "feed")
"""The rooms with tables, in the order of their foreign keys."""

TABLES = (*(SERVICE / room / "tables.sql" for room in ROOMS), SQL / "migrations.sql")
FUNCTIONS = tuple(
    sorted([*SERVICE.glob("*/functions/*.sql"), *SQL.glob("functions/*.sql")], key=lambda file: file.name)
)
RULES = tuple(SQL / f"{name}.sql" for name in ("triggers", "policies", "grants", "walls", "partitions", "statistics"))

# functions are made before the tables they read, and only those who are granted them may call them
HEADER = """SET LOCAL check_function_bodies = off;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
"""


def script() -> str:
    """The statements that make the schema, for one transaction. `:dimension` and `:partitions` are left open, as psql
    variables."""
    return "\n".join([HEADER, *(file.read_text() for file in (*FUNCTIONS, *TABLES, *RULES))])


def fingerprint() -> str:
    """Tells two states of the files apart, but for comments and white space."""
    return hashlib.sha256(" ".join(re.sub(r"--.*", "", script()).split()).encode()).hexdigest()
