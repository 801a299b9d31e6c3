"""Migrations after the first release: what their files must keep to, and that they run next to a service
that is in use. The migrations here are scratch ones, in a copy of the folder."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from bench.superuser import login_url, own_database
from service.access.statements import keys
from service.kit.settings import Settings
from service.postgres import migrate
from service.postgres.roles import APP, OWNER
from service.runtime.resources import Resources
from service.runtime.statements import generations
from tests.conftest import open_as
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import client_of, serving

VERSIONS = migrate.MIGRATIONS / "versions"
HEADER = '''"""Add the colour of goals"""

from alembic import op
from service.postgres import migrate

revision = "0002"
down_revision = "0001"


'''
EXPAND = (
    HEADER
    + '''def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    migrate.script("""
        ALTER TABLE goal ADD COLUMN colour text;  -- null is no colour; nobody has to send one
        CREATE TABLE palette (workspace_id uuid NOT NULL, id uuid NOT NULL, colour text DEFAULT 'a;b');
        CREATE INDEX ix_palette ON palette (workspace_id);
    """)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP TABLE palette")
    op.execute("ALTER TABLE goal DROP COLUMN colour")
'''
)

INDEX = re.compile(
    r"CREATE\s+(?:UNIQUE\s+)?INDEX\s+(CONCURRENTLY\s+)?.*?\sON\s+(?:ONLY\s+)?(\w+)", re.IGNORECASE | re.S
)
MADE = re.compile(r"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)", re.IGNORECASE)
CONTRACTS = re.compile(
    r"DROP\s+(?:TABLE|COLUMN|FUNCTION|VIEW)|\bRENAME\b|ALTER\s+COLUMN\s+\w+\s+(?:SET\s+DATA\s+)?TYPE|SET\s+NOT\s+NULL",
    re.IGNORECASE,
)


def broken_rules(python: str, sql: str = "") -> list[str]:
    """What a migration after the baseline does that it must not (docs/upgrades.md)."""
    forward = python.partition("def downgrade")[0] + sql
    found, made = [], set(MADE.findall(forward))
    for concurrently, table in INDEX.findall(forward):
        if not concurrently and table not in made:
            found.append(f"builds an index on {table} while nobody may write it")
    first = python.partition("def upgrade() -> None:")[2].strip().splitlines()[0] if "def upgrade" in python else ""
    if "lock_timeout" not in first:
        found.append("its first statement does not set lock_timeout")
    if CONTRACTS.search(forward) and "FUNCTION schema_revision()" not in forward:
        found.append("takes away what older code uses, and schema_revision() does not say so")
    return found


def test_the_migrations_keep_the_rules() -> None:
    for file in sorted(VERSIONS.glob("0*.py")):
        frozen = file.with_suffix(".sql")
        if file.stem != "0001_baseline":
            assert broken_rules(file.read_text(), frozen.read_text() if frozen.exists() else "") == [], file.name


@pytest.mark.parametrize(
    ("upgrade", "says"),
    [
        ("op.execute(\"SET LOCAL lock_timeout = '5s'\")\n    op.execute('CREATE INDEX ix ON memory (id)')", "memory"),
        ("op.execute('ALTER TABLE memory ADD COLUMN x text')", "lock_timeout"),
        (
            "op.execute(\"SET LOCAL lock_timeout = '5s'\")\n    op.execute('ALTER TABLE goal DROP COLUMN x')",
            "takes away",
        ),
    ],
)
def test_a_migration_that_breaks_a_rule_is_refused(upgrade: str, says: str) -> None:
    [found] = broken_rules(f"def upgrade() -> None:\n    {upgrade}\n\n\ndef downgrade() -> None:\n    pass\n")
    assert says in found
    assert broken_rules(EXPAND) == []


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The migrations of a later version: those there are, and a scratch one."""
    shutil.copytree(migrate.MIGRATIONS, tmp_path / "migrations", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "migrations" / "versions" / "0002_colour.py").write_text(EXPAND)
    monkeypatch.setattr(migrate, "MIGRATIONS", tmp_path / "migrations")
    return tmp_path


@pytest.fixture
async def released(owner_url: str, settings: Settings) -> AsyncIterator[tuple[str, asyncpg.Connection[Any]]]:
    """A database of this version: its owner's URL, and a connection of the superuser."""
    async with own_database(owner_url, "released") as (url, connection):
        await migrate.upgrade_async(login_url(url, OWNER), settings)
        await generations.record_first(url, AngleEmbedder.model, settings.embedder.dim)
        yield url, connection


async def test_an_expanding_migration_runs_beside_the_old_version(
    released: tuple[str, asyncpg.Connection[Any]],
    settings: Settings,
    resources: Resources,
    request: pytest.FixtureRequest,
) -> None:
    """Two that migrate at once end well; this version, the old one then, goes on reading and writing."""
    url, connection = released
    owner = login_url(url, OWNER)
    request.getfixturevalue("later")
    await asyncio.wait_for(asyncio.gather(*(migrate.upgrade_async(owner, settings) for _ in range(2))), 60)
    assert await connection.fetchval("SELECT version_num FROM alembic_version") == "0002"
    applied = await connection.fetch("SELECT version, description FROM schema_version ORDER BY version")
    assert [row["version"] for row in applied] == [1, 2]
    assert applied[1]["description"] == "Add the colour of goals"

    async with open_as(url, APP, size=2) as database:
        issued = await keys.create_workspace(database, "old", rights=keys.EVERY_RIGHT)
        async with serving(replace(resources, db=database)) as app, client_of(app, issued.secret) as client:
            assert (await client.get("/readyz")).json() == {"status": "ok"}
            new = {"content": "Ada lives in Oslo.", "user_id": "ada"}
            assert (await client.post("/v1/memories", json=new)).status_code == 201
            goal = await client.post("/v1/goals", json={"description": "Learn to sail", "user_id": "ada"})
            assert goal.status_code == 201, "a table that has gained a column"
            found = await client.post("/v1/memories/search", json={"query": "Where does Ada live?", "user_id": "ada"})
            assert [each["memory"] for each in found.json()["results"]] == [new["content"]]
