"""The schema's files, in the order in which they run in an empty database: the only place where it is written down."""

from __future__ import annotations

from pathlib import Path

SQL = Path(__file__).resolve().parent / "sql"

TABLES = tuple(
    SQL / "tables" / f"{name}.sql"
    for name in (
        "tenants",
        "memories",
        "vectors",
        "conversations",
        "entities",
        "goals",
        "procedures",
        "history",
        "jobs",
        "migrations",
    )
)
"""In the order of their foreign keys."""

# functions are made before the tables they read
HEADER = "SET LOCAL check_function_bodies = off;\n"


def script() -> str:
    """The statements that make the schema, for one transaction. `:dimension` and `:partitions` are left open, as psql
    variables."""
    functions = sorted((SQL / "functions").glob("*.sql"))
    rest = (SQL / f"{name}.sql" for name in ("triggers", "policies", "grants", "walls", "partitions", "statistics"))
    return "\n".join([HEADER, *(file.read_text() for file in (*functions, *TABLES, *rest))])
