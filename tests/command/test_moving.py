"""An export holds everything, and an import puts it back, whole or not at all."""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from typer.testing import CliRunner, Result

from service.command import archive, cli, transfer, workspace_copy
from service.command.terminal import CommandError
from service.command.workspace_copy import Imported, export, import_export
from service.postgres import doctor, tables
from tests.command.conftest import Moving

ROOT = Path(__file__).parents[2]


def quiet(what: str, done: int, total: int | None = None) -> None:
    """No progress is shown."""


@pytest.fixture
async def exported(moving: Moving, tmp_path: Path) -> Path:
    await export(moving.as_worker, tmp_path / "a", str(moving.full), with_vectors=True, advance=quiet)
    return tmp_path / "a"


async def brought_in(moving: Moving, folder: Path, workspace: UUID) -> Imported:
    made = list[str]()
    done = await import_export(
        moving.as_worker, folder, str(workspace), advance=quiet, announce=lambda _, key: made.append(key)
    )
    assert not made
    return done


async def lines(moving: Moving, side: Path | UUID) -> dict[str, list[str]]:
    """What the folder of an export holds, or a workspace would export; without jobs, which follow from the rest."""
    names = [each.name for each in transfer.tables() if each.name != "job"]
    if isinstance(side, Path):
        entries = archive.read(side).tables
        return {name: list(archive.lines(side, name)) if any(e.name == name for e in entries) else [] for name in names}
    async with workspace_copy.connected(moving.as_worker) as connection, workspace_copy.within(connection, side):
        generation = (await transfer.active(connection)).number
        return {
            table.name: [line async for line in transfer.lines(connection, table, side, generation, with_vectors=True)]
            for table in transfer.tables()
            if table.name in names
        }


def test_what_is_written_of_the_tables_is_in_the_schema() -> None:
    """Which columns a sequence numbers, and which lead to a row of the same table."""
    numbered, own = {}, {}
    for table in transfer.tables():
        definition = tables.DEFINITIONS[table.name]
        found = re.search(r"(\w+) bigint NOT NULL DEFAULT nextval\('(\w+)'\)", definition)
        if found and not transfer.is_given(table.c[found[1]]):
            assert found[2] == f"{table.name}_seq"
            numbered[table.name] = found[1]
        if key := re.search(rf"\(workspace_id, (\w+)\)\s+REFERENCES {table.name} ", definition):
            own[table.name] = (key[1],)
    assert (numbered, own) == (transfer.NUMBERED, transfer.OWN)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("is_there", [False, True])
async def test_nobody_else_reads_an_export(moving: Moving, tmp_path: Path, umask: int, is_there: bool) -> None:
    before = os.umask(umask)
    try:
        if is_there:
            (tmp_path / "private").mkdir()
        await export(moving.as_worker, tmp_path / "private", str(moving.full), with_vectors=True, advance=quiet)
    finally:
        os.umask(before)
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in (tmp_path / "private").iterdir()} == {0o600}


async def test_what_is_exported_and_imported_is_the_same(moving: Moving, exported: Path) -> None:
    target = await moving.empty()
    done = await brought_in(moving, exported, target)
    assert done.with_vectors
    assert done.rows == archive.read(exported).rows > 40

    before, after = await moving.contents(moving.full), await moving.contents(target)
    before.pop("job"), after.pop("job")  # what ran begins again there
    assert after == before
    assert [
        tuple(row)
        for row in await moving.run(
            "SELECT state, worker, lease_until, attempts FROM job WHERE workspace_id = $1", target
        )
    ] == [("ready", None, None, 0)]

    assert await lines(moving, moving.full) == await lines(moving, exported) == await lines(moving, target)
    broken = {
        (each.check.name, row.id)
        for each in await doctor.examine(moving.as_owner, examples=100)
        for row in each.examples
        if row.workspace_id == target
    }
    assert not broken

    (row,) = await moving.run("SELECT max(id) FROM tool_invocation WHERE workspace_id = $1", target)
    (following,) = await moving.run("SELECT nextval('tool_invocation_seq')")
    assert following[0] > row[0]
    assert "is not empty" in await refusal(moving, exported, target), "a second time"


async def test_an_export_without_vectors_has_them_made_again(moving: Moving, tmp_path: Path) -> None:
    found = await export(moving.as_worker, tmp_path / "b", str(moving.full), with_vectors=False, advance=quiet)
    assert not {each.name for each in found.tables} & {"memory_vector", "turn_vector", "goal_vector"}
    target = await moving.empty()
    assert not (await brought_in(moving, tmp_path / "b", target)).with_vectors
    assert set((await lines(moving, target))["memory"]) == set((await lines(moving, tmp_path / "b"))["memory"])
    waiting = await moving.run(
        "SELECT (SELECT count(*) FROM memory WHERE workspace_id = $1 AND embedding_status = 'queued'), "
        "(SELECT count(*) FROM job WHERE workspace_id = $1 AND kind = 'embed' AND memory_id IS NOT NULL), "
        "(SELECT count(*) FROM job WHERE workspace_id = $1 AND kind = 'embed' AND memory_id IS NULL)",
        target,
    )
    assert tuple(waiting[0]) == (3, 3, 1)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from service.command import workspace_copy

workspace_copy.BATCH_ROWS = 1
seen = 0

def advance(what, done, total=None):
    global seen
    seen += 1
    if seen == 26:
        os.kill(os.getpid(), signal.SIGKILL)

url, folder, workspace = sys.argv[1:]
asyncio.run(workspace_copy.import_export(url, Path(folder), workspace, advance=advance, announce=print))
"""


async def test_a_killed_import_leaves_nothing(moving: Moving, exported: Path) -> None:
    target = await moving.empty()
    command = [sys.executable, "-c", KILLED, moving.as_worker, str(exported), str(target)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL  # noqa: ASYNC221
    await brought_in(moving, exported, target)
    assert await lines(moving, moving.full) == await lines(moving, target)


async def test_a_workspace_that_is_missing_is_made_with_its_id(moving: Moving, exported: Path) -> None:
    manifest = json.loads((exported / "manifest.json").read_text())
    manifest["workspace"] |= {"id": str(uuid4()), "name": "elsewhere", "settings": {"timezone": "Europe/Oslo"}}
    (exported / "manifest.json").write_text(json.dumps(manifest))
    made = dict[UUID, str]()
    done = await import_export(moving.as_worker, exported, None, advance=quiet, announce=made.__setitem__)
    assert str(done.workspace_id) == manifest["workspace"]["id"]
    assert made == {done.workspace_id: done.new_key}
    (row,) = await moving.run("SELECT name, settings FROM workspace WHERE workspace_id = $1", done.workspace_id)
    assert tuple(row) == ("elsewhere", '{"timezone": "Europe/Oslo"}')


async def refusal(moving: Moving, folder: Path, workspace: UUID) -> str:
    with pytest.raises(CommandError) as refused:
        await brought_in(moving, folder, workspace)
    return str(refused.value)


async def test_what_cannot_be_imported_is_refused_before_anything_is_written(moving: Moving, exported: Path) -> None:
    target = await moving.empty()
    assert "is not empty" in await refusal(moving, exported, moving.full)

    packed = (exported / "memory.jsonl.gz").read_bytes()
    (exported / "memory.jsonl.gz").write_bytes(packed[:-40])
    assert "is damaged" in await refusal(moving, exported, target)
    (exported / "memory.jsonl.gz").write_bytes(gzip.compress(gzip.decompress(packed).replace(b"dog", b"cat")))
    assert "is not what was exported" in await refusal(moving, exported, target)
    (exported / "memory.jsonl.gz").write_bytes(packed)

    manifest = exported / "manifest.json"
    whole = json.loads(manifest.read_text())
    for changed, said in (({"version": 2}, "version 2 of the format"), ({"revision": 99}, "revision 99")):
        manifest.write_text(json.dumps(whole | changed))
        assert said in await refusal(moving, exported, target)
    manifest.unlink()
    assert "was interrupted" in await refusal(moving, exported, target)
    assert not any((await moving.contents(target)).values())
    with pytest.raises(CommandError, match="no workspace"):
        await export(moving.as_worker, exported, str(uuid4()), with_vectors=True, advance=quiet)


async def test_the_settings_come_along_unless_the_target_has_its_own(moving: Moving, tmp_path: Path) -> None:
    async def settings(workspace: UUID, changed: str | None = None) -> dict[str, object]:
        if changed is not None:
            await moving.run("UPDATE workspace SET settings = $2::jsonb WHERE workspace_id = $1", workspace, changed)
        (row,) = await moving.run("SELECT settings::text FROM workspace WHERE workspace_id = $1", workspace)
        found: dict[str, object] = json.loads(row[0])
        return found

    await settings(moving.full, '{"timezone": "Europe/Oslo", "memory_retention_days": 30}')
    try:
        await export(moving.as_worker, tmp_path / "set", str(moving.full), with_vectors=True, advance=quiet)
    finally:
        await settings(moving.full, "{}")
    for own, after in (
        ("{}", {"timezone": "Europe/Oslo", "memory_retention_days": 30}),
        ('{"timezone": "UTC"}', {"timezone": "UTC", "memory_retention_days": 30}),
    ):
        target = await moving.empty()
        await settings(target, own)
        await brought_in(moving, tmp_path / "set", target)
        assert await settings(target) == after


async def test_a_damaged_manifest_is_a_sentence(moving: Moving, exported: Path) -> None:
    whole = json.loads((exported / "manifest.json").read_text())
    unusable = {**whole, "workspace": {**whole["workspace"], "settings": {"memory_retention_days": 5_000_000}}}
    bare = {"format": "loxodon-export", "version": 1}
    for damaged in ({**whole, "tables": None}, bare, {**whole, "more": 1}, unusable):
        (exported / "manifest.json").write_text(json.dumps(damaged))
        assert "is damaged" in await refusal(moving, exported, await moving.empty())


async def test_every_table_of_a_workspace_travels_or_says_why_not(moving: Moving) -> None:
    rows = await moving.run(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id' "
        "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
    )
    assert {row[0] for row in rows} == {each.name for each in transfer.tables()} | transfer.LEFT_OUT.keys()


async def test_the_commands_say_what_they_did(moving: Moving, tmp_path: Path) -> None:
    env = {"DATABASE_URL": moving.as_worker, "LOXODON_OWNER_DATABASE_URL": moving.as_owner}

    async def loxodon(*words: str) -> Result:
        return await asyncio.to_thread(CliRunner(env=env).invoke, cli.app, list(words))

    folder = tmp_path / "out"
    made = await loxodon("export", str(folder), "--workspace", str(moving.full), "--json")
    assert json.loads(made.stdout)["tables"]["memory"] == 3, made.stderr
    refused = await loxodon("import", str(folder))
    assert refused.exit_code == 1
    assert refused.stderr.strip().startswith("loxodon: Workspace ")
    listed = await loxodon("workspaces", "list", "--json")
    assert {"id": str(moving.full), "memories": 3}.items() <= {
        key: value
        for each in json.loads(listed.stdout)
        if each["id"] == str(moving.full)
        for key, value in each.items()
    }.items()


async def test_an_export_that_fails_leaves_nothing(moving: Moving, tmp_path: Path) -> None:
    def stopped(what: str, done: int, total: int | None = None) -> None:
        if done > 3:
            raise KeyboardInterrupt

    for named in ("nobody", None, str(moving.full)):  # None: there are several
        with pytest.raises((CommandError, KeyboardInterrupt)):
            await export(moving.as_worker, tmp_path / "new", named, with_vectors=True, advance=stopped)
    assert not (tmp_path / "new").exists()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "letter.txt").touch()
    with pytest.raises(CommandError, match="holds other files"):
        await export(moving.as_worker, tmp_path / "new", str(moving.full), with_vectors=True, advance=stopped)
    assert (tmp_path / "new" / "letter.txt").exists()


async def test_a_full_disk_is_a_sentence_and_leaves_nothing(
    moving: Moving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: archive.Writer, line: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(archive.Writer, "add", full)
    with pytest.raises(CommandError, match="No space left on device"):
        await export(moving.as_worker, tmp_path / "new", str(moving.full), with_vectors=True, advance=quiet)
    assert not (tmp_path / "new").exists()
