"""Puts the files of service/db/sql together and freezes them as the baseline: `make schema-freeze`.

The files hold the schema's current text. Only while nothing is released may the baseline follow them; afterwards each
change is a migration of its own, and this file only serves the test that compares migrated databases with the files.
"""

from __future__ import annotations

from pathlib import Path

SQL = Path(__file__).resolve().parents[1] / "service" / "db" / "sql"
BASELINE = Path(__file__).resolve().parent / "versions" / "0001_baseline.sql"

TABLES = (
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
"""In the order of their foreign keys."""

HEADER = """\
-- Made by `make schema-freeze` from service/db/sql, where the current text stands: change it there.
-- To run it in psql: \\set dimension 384, \\set partitions 1.

SET LOCAL check_function_bodies = off;  -- functions are made before the tables they read
"""


def files() -> list[Path]:
    """The files of service/db/sql in the order in which they run."""
    return [
        *sorted((SQL / "functions").glob("*.sql")),
        *(SQL / "tables" / f"{name}.sql" for name in TABLES),
        *(SQL / f"{name}.sql" for name in ("triggers", "policies", "grants", "walls", "partitions", "statistics")),
    ]


def whole() -> str:
    """One script that makes the schema in an empty database; `:dimension` and `:partitions` are left open."""
    parts = (f"-- {file.relative_to(SQL)}\n{file.read_text().strip()}\n" for file in files())
    return "\n".join([HEADER, *parts])


if __name__ == "__main__":
    BASELINE.write_text(whole())
