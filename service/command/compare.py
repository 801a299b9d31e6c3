"""`loxodon doctor --compare A B`: what differs between two databases, or a workspace and an export, row by row.

Both sides are read in the order of the primary keys and walked side by side, so memory does not grow with them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]

from service.command import archive, transfer, workspace_access
from service.command.archive import Manifest
from service.command.output import Advance
from service.command.problems import CommandError
from service.command.transfer import ExportedTable
from service.kit.settings import Settings
from service.launch.owner import embedded_url, login_url
from service.postgres.readiness import EXPECTED_REVISION
from service.postgres.roles import OWNER
from service.runtime.statements.generations import Generation

HERE = "here"
SIDES = (
    "Each side is a Postgres URL, the folder of an export, a data folder of an embedded Postgres, or `here` for the "
    "configured database; Append #WORKSPACE to a database for one workspace of it."
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that one side lacks, or that differs. `fields`: which of its columns."""

    what: str  # only in A, only in B, differs
    key: dict[str, Any]
    fields: tuple[str, ...] = ()


@dataclass(slots=True)
class TableResult:
    """How the rows of one table of one workspace compare; `examples`: some of the differences."""

    workspace_id: UUID
    table: str
    equal: int = 0
    only_a: int = 0
    only_b: int = 0
    differing: int = 0
    examples: list[Difference] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        return not (self.only_a or self.only_b or self.differing)


class ExportSide:
    """An export in a folder. `workspaces`: its only one; `with_vectors`: whether it has vectors at all."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        if manifest.revision != EXPECTED_REVISION:
            raise CommandError(
                f"The export in {folder} has revision {manifest.revision} of the schema, and is compared by revision "
                f"{EXPECTED_REVISION}: import it, and compare the databases."
            )
        self._folder, self._manifest = folder, manifest
        self.with_vectors = manifest.with_vectors
        self.embedder = manifest.embedder["model"], manifest.embedder["dimension"]

    async def workspaces(self) -> list[UUID]:
        return [self._manifest.workspace_id]

    async def lines(self, table: ExportedTable, workspace_id: UUID, *, with_vectors: bool) -> AsyncIterator[str]:
        if self.with_vectors and not with_vectors:
            raise CommandError("An export with vectors cannot be compared with one that has none, or other ones.")
        for line in archive.lines(self._folder, table.name) if self._manifest.table(table.name) else ():
            yield line


class DatabaseSide:
    """A database, read as the owner of its schema in one snapshot."""

    with_vectors = True

    def __init__(self, connection: Any, generation: Generation, only: UUID | None) -> None:
        self._connection, self._generation, self._only = connection, generation, only
        self.embedder = generation.model, generation.dimension

    async def workspaces(self) -> list[UUID]:
        if self._only is not None:
            return [self._only]
        return [row[0] for row in await self._connection.fetch(transfer.ALL_WORKSPACES)]

    def lines(self, table: ExportedTable, workspace_id: UUID, *, with_vectors: bool) -> AsyncIterator[str]:
        return transfer.lines(self._connection, table, workspace_id, self._generation.number, with_vectors=with_vectors)


Side = ExportSide | DatabaseSide


async def compare(a: Side, b: Side, *, examples: int, advance: Advance) -> list[TableResult]:
    """A result for each table of each workspace that one of them has. Where both are one workspace, they are compared
    even if their ids differ. Vectors are left out where one side has none, or those of another embedder."""
    with_vectors = a.with_vectors and b.with_vectors and a.embedder == b.embedder
    of_a, of_b = await a.workspaces(), await b.workspaces()
    if isinstance(a, ExportSide) and len(of_b) > 1:
        of_b = of_a
    if isinstance(b, ExportSide) and len(of_a) > 1:
        of_a = of_b
    single = len(of_a) == len(of_b) == 1
    pairs = [(of_a[0], of_b[0])] if single else [(each, each) for each in sorted({*of_a, *of_b})]
    results = []
    for in_a, in_b in pairs:
        for table in transfer.tables():
            if table.is_compared and (with_vectors or not table.is_vectors):
                result = TableResult(in_a, table.name)
                await _walk(
                    table,
                    a.lines(table, in_a, with_vectors=with_vectors),
                    b.lines(table, in_b, with_vectors=with_vectors),
                    result,
                    examples,
                )
                results.append(result)
                advance(table.name, sum(each.equal for each in results))
    return results


def is_equal(results: list[TableResult]) -> bool:
    return all(each.is_equal for each in results)


async def _walk(
    table: ExportedTable, of_a: AsyncIterator[str], of_b: AsyncIterator[str], result: TableResult, examples: int
) -> None:
    """Steps through both in the order of their keys."""
    a, b = await anext(of_a, None), await anext(of_b, None)
    while a is not None or b is not None:
        if a == b:
            result.equal += 1
            a, b = await anext(of_a, None), await anext(of_b, None)
            continue
        row_a, row_b = _row(a), _row(b)
        place_a = None if row_a is None else table.place(row_a)
        place_b = None if row_b is None else table.place(row_b)
        if place_a == place_b:
            assert row_a is not None
            assert row_b is not None
            fields = tuple(name for name in {**row_a, **row_b} if row_a.get(name) != row_b.get(name))
            if fields:
                result.differing += 1
                _note(result, table, "differs", row_a, fields, examples)
            else:
                result.equal += 1  # the same in another spelling
            a, b = await anext(of_a, None), await anext(of_b, None)
        elif place_b is None or (place_a is not None and place_a < place_b):
            assert row_a is not None
            result.only_a += 1
            _note(result, table, "only in A", row_a, (), examples)
            a = await anext(of_a, None)
        else:
            assert row_b is not None
            result.only_b += 1
            _note(result, table, "only in B", row_b, (), examples)
            b = await anext(of_b, None)


def _row(line: str | None) -> dict[str, Any] | None:
    return None if line is None else json.loads(line)


def _note(
    result: TableResult, table: ExportedTable, what: str, row: dict[str, Any], fields: tuple[str, ...], examples: int
) -> None:
    if len(result.examples) < examples:
        result.examples.append(Difference(what, {name: row[name] for name in table.key}, fields))


@asynccontextmanager
async def opened(named: str, settings: Settings) -> AsyncIterator[Side]:
    """What a word of the command line names. Raises CommandError, LaunchError, StoreUnavailable."""
    where, _, only = named.partition("#")
    folder = Path(where)
    if where != HERE and "://" not in where and not (folder / "postgres" / "PG_VERSION").is_file():
        yield _export(folder)
        return
    async with AsyncExitStack() as stack:
        url = stack.enter_context(_url(where, settings))
        connection = await stack.enter_async_context(workspace_access.connected(url))
        await _become_owner(connection, where)
        await stack.enter_async_context(connection.transaction(isolation="repeatable_read", readonly=True))
        generation = await transfer.active(connection)
        found = await _named(connection, only) if only else None
        yield DatabaseSide(connection, generation, found)


def _export(folder: Path) -> ExportSide:
    if not folder.is_dir():
        raise CommandError(f"{str(folder)!r} is nothing that can be compared. {SIDES}")
    manifest = archive.read(folder)
    archive.verify(folder, manifest)
    return ExportSide(folder, manifest)


@contextmanager
def _url(where: str, settings: Settings) -> Iterator[str]:
    if where == HERE:
        with login_url(settings, OWNER) as url:
            yield url
    elif "://" in where:
        yield where
    else:
        with embedded_url(Path(where), OWNER) as url:
            yield url


async def _become_owner(connection: Any, where: str) -> None:
    try:
        await connection.execute(f"SET ROLE {OWNER}")
    except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidParameterValueError) as exc:
        raise CommandError(
            f"The login of {where!r} may not become {OWNER}, so row-level security would hide rows: name the login "
            "that migrates."
        ) from exc


async def _named(connection: Any, named: str) -> UUID:
    rows = await connection.fetch("SELECT workspace_id, name FROM workspace")
    found = [row["workspace_id"] for row in rows if named in (str(row["workspace_id"]), row["name"])]
    if len(found) != 1:
        raise CommandError(f"{len(found) or 'No'} workspaces are called {named!r}: name one by its id.")
    return found[0]  # type: ignore[no-any-return]


def text(results: list[TableResult]) -> str:
    """For a person: what differs, and how much is equal."""
    lines = []
    for each in results:
        if each.is_equal:
            continue
        counts = f"{each.only_a} only in A, {each.only_b} only in B, {each.differing} differ, {each.equal} are equal"
        lines.append(f"{each.table} of workspace {each.workspace_id}: {counts}")
        for row in each.examples:
            key = " ".join(str(value) for value in row.key.values() if value is not None)
            lines.append(f"  {row.what}: {key}" + (f" in {', '.join(row.fields)}" if row.fields else ""))
    rows = sum(each.equal for each in results)
    spaces = len({each.workspace_id for each in results})
    verdict = "They differ." if lines else f"Equal: {rows} rows of {spaces} workspace{'' if spaces == 1 else 's'}."
    return "\n".join([*lines, verdict])


def as_json(results: list[TableResult]) -> str:
    """For a program; docs/doctor.md describes it."""
    tables = [{**asdict(each), "workspace_id": str(each.workspace_id)} for each in results]
    return json.dumps({"equal": is_equal(results), "tables": tables}, indent=1)
