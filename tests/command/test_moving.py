"""An export holds everything, an import puts it back, also after kill -9, and the comparison tells what differs."""

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
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from typer.testing import CliRunner, Result

from service.command import archive, cli, compare, transfer
from service.command.compare import TableResult
from service.command.export import export
from service.command.importing import Imported, import_export
from service.command.problems import CommandError
from service.kit.settings import Settings
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


async def compared(moving: Moving, a: object, b: object) -> list[TableResult]:
    """`a` and `b`: a folder, or a workspace of the database."""
    names = [str(each) if isinstance(each, Path) else f"{moving.as_owner}#{each}" for each in (a, b)]
    async with AsyncExitStack() as stack:
        sides = [await stack.enter_async_context(compare.opened(name, Settings.model_validate({}))) for name in names]
        return await compare.compare(*sides, examples=5, advance=quiet)


def test_what_is_written_of_the_tables_is_in_the_schema() -> None:
    """Which columns a sequence numbers, and which lead to a row of the same table."""
    numbered, own = {}, {}
    for table in transfer.tables():
        definition = tables.DEFINITIONS[table.name]
        if found := re.search(r"(\w+) bigint NOT NULL DEFAULT nextval\('(\w+)'\)", definition):
            assert found[2] == f"{table.name}_seq"
            numbered[table.name] = found[1]
        if key := re.search(rf"\(workspace_id, (\w+)\)\s+REFERENCES {table.name} ", definition):
            own[table.name] = (key[1],)
    assert (numbered, own) == (transfer.NUMBERED, transfer.OWN)


def differing(results: list[TableResult]) -> set[str]:
    return {each.table for each in results if not each.is_equal}


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
    assert done.rows == archive.read(exported).rows > 50

    before, after = await moving.contents(moving.full), await moving.contents(target)
    for passing in ("job", "operation"):  # what ran is begun anew there, and the import has noted itself
        before.pop(passing), after.pop(passing)
    assert after == before
    assert [
        tuple(row)
        for row in await moving.run(
            "SELECT state, worker, lease_until, attempts FROM job WHERE workspace_id = $1", target
        )
    ] == [("ready", None, None, 0)]

    results = await compared(moving, moving.full, target)
    assert compare.is_equal(results)
    assert {each.table for each in results} == {each.name for each in transfer.tables()} - transfer.PASSING
    assert compare.is_equal(await compared(moving, exported, target))
    broken = {
        (each.check.name, row.id)
        for each in await doctor.examine(moving.as_owner, examples=100)
        for row in each.examples
        if row.workspace_id == target
    }
    assert not broken

    (row,) = await moving.run("SELECT max(seq) FROM memory_history WHERE workspace_id = $1", target)
    (following,) = await moving.run("SELECT nextval('memory_history_seq')")
    assert following[0] > row[0]
    again = await brought_in(moving, exported, target)
    assert (again.rows, again.resumed) == (0, done.rows)


async def test_an_export_without_vectors_has_them_made_again(moving: Moving, tmp_path: Path) -> None:
    found = await export(moving.as_worker, tmp_path / "b", str(moving.full), with_vectors=False, advance=quiet)
    assert not {each.name for each in found.tables} & {"memory_vector", "turn_vector", "goal_vector"}
    target = await moving.empty()
    assert not (await brought_in(moving, tmp_path / "b", target)).with_vectors
    assert compare.is_equal(await compared(moving, tmp_path / "b", target))
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
from service.command import importing

importing.BATCH_ROWS = 1
seen = 0

def advance(what, done, total=None):
    global seen
    seen += 1
    if seen == 26:
        os.kill(os.getpid(), signal.SIGKILL)

url, folder, workspace = sys.argv[1:]
asyncio.run(importing.import_export(url, Path(folder), workspace, advance=advance, announce=print))
"""


async def test_a_killed_import_goes_on(moving: Moving, exported: Path) -> None:
    target, kills = await moving.empty(), 0
    command = [sys.executable, "-c", KILLED, moving.as_worker, str(exported), str(target)]
    while subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL:  # noqa: ASYNC221
        kills += 1
        assert kills > 1 or not compare.is_equal(await compared(moving, exported, target))
    assert kills >= 2
    assert compare.is_equal(await compared(moving, moving.full, target))


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


async def test_differences_are_named(moving: Moving, exported: Path) -> None:
    target = await moving.empty()
    await brought_in(moving, exported, target)
    await moving.run("UPDATE memory_history SET new_memory = 'x' WHERE workspace_id = $1 AND event = 'ADD'", target)
    await moving.run("DELETE FROM goal_memory WHERE workspace_id = $1", target)
    await moving.run("INSERT INTO user_profile (workspace_id, user_id) VALUES ($1, 'bob')", target)
    results = await compared(moving, exported, target)
    assert differing(results) == {"memory_history", "goal_memory", "user_profile"}
    by_table = {each.table: each for each in results}
    assert by_table["memory_history"].examples[0].fields == ("new_memory",)
    assert (by_table["goal_memory"].only_a, by_table["user_profile"].only_b) == (1, 1)
    assert by_table["user_profile"].examples[0].key == {"user_id": "bob"}
    assert "only in B: bob" in compare.text(results)
    assert json.loads(compare.as_json(results))["equal"] is False


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
    equal = await loxodon("doctor", "--compare", str(folder), f"here#{moving.full}")
    assert (equal.exit_code, equal.stdout.startswith("Equal: ")) == (0, True), equal.stderr
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
