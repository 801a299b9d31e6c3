"""Copies one workspace: `loxodon export` into a folder, `loxodon import` into an empty workspace.

An export is read from one snapshot, an import commits as one transaction. The connection sees one workspace at a time:
it has the worker's login, under row-level security.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import TableClause
from uuid_utils.compat import uuid7

from service import __version__
from service.access.statements import keys
from service.command import archive, transfer
from service.command.archive import Manifest, TableEntry
from service.command.terminal import Advance, CommandError
from service.domain.filters import uuid_or_none
from service.launch.data_dir import removed_on_failure
from service.postgres import citus, readiness
from service.postgres.engine import Access, Database
from service.postgres.readiness import EXPECTED_REVISION
from service.postgres.roles import URL_VARIABLES, WORKER

SESSION_SETTINGS = {
    "idle_in_transaction_session_timeout": "0",  # a slow disk is no reason to lose the snapshot
    "application_name": "loxodon",
}


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    """A connection to a database whose schema this version knows. Raises StoreUnavailable or SchemaMismatch, and
    CommandError for failures: the database stops, the disk is full."""
    async with readiness.connected(url, **SESSION_SETTINGS) as connection:
        try:
            await readiness.demand_revision(connection)
            yield connection
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as exc:
            if getattr(exc, "filename", None) is not None:  # a path that cannot be written, now or later
                raise
            raise CommandError(f"It stopped: {exc}. Give the command again.") from exc


@asynccontextmanager
async def within(connection: Any, workspace_id: UUID, **options: Any) -> AsyncIterator[None]:
    """A transaction that sees this workspace, and may write memories that belong to all of it."""
    async with connection.transaction(**options):
        await connection.execute(
            f"SET LOCAL {citus.ALONE}; SET LOCAL loxodon.workspace = '{workspace_id}'; "
            f"SET LOCAL loxodon.shared = 'on'; {citus.PROPAGATE}"
        )
        yield


async def _name_of(connection: Any, workspace_id: UUID) -> str | None:
    """The name of a workspace; None if there is none with this id."""
    async with within(connection, workspace_id):
        row = await connection.fetchrow(transfer.WORKSPACE, workspace_id)
    return str(row["name"]) if row else None


async def find_workspace(connection: Any, named: str | None) -> UUID:
    """The workspace with this id or name; without one the only one that there is. Raises CommandError."""
    if named is not None and (as_id := uuid_or_none(named)) is not None:
        if await _name_of(connection, as_id) is None:
            raise CommandError(f"There is no workspace {named} in the database.")
        return as_id
    names = await _workspace_names(connection)
    ids = [each for each, name in names.items() if named in (None, name)]
    if len(ids) == 1:
        return ids[0]
    listed = "\n".join(f"  {each}  {name}" for each, name in list(names.items())[:20])
    if named is not None:
        problem = f"{len(ids) or 'No'} workspace{'s are' if len(ids) > 1 else ' is'} called {named!r}"
    else:
        problem = "There are several workspaces" if names else "There is no workspace"
    raise CommandError(f"{problem}: name one with --workspace.\n{listed}")


async def _workspace_names(connection: Any) -> dict[UUID, str]:
    try:
        ids = [row[0] for row in await connection.fetch(transfer.WORKSPACES)]
    except asyncpg.InsufficientPrivilegeError as exc:
        raise CommandError(
            "This login may not list the workspaces: name one with --workspace, or set "
            f"{URL_VARIABLES[WORKER]} to the worker's login."
        ) from exc
    return {each: await _name_of(connection, each) or "" for each in ids}


async def list_workspaces(url: str) -> list[dict[str, Any]]:
    """All workspaces with their names and sizes, as the worker sees them."""
    async with connected(url) as connection:
        entries = []
        for each, name in (await _workspace_names(connection)).items():
            async with within(connection, each):
                row = await connection.fetchrow(transfer.SIZE, each)
            entries.append({"id": str(each), "name": name, **row, "created_at": row["created_at"].isoformat()})
        return entries


async def export(url: str, folder: Path, named: str | None, *, with_vectors: bool, advance: Advance) -> Manifest:
    """Writes the workspace with this id or name (None: the only one) and returns the manifest. `url`: of the worker.

    Memory does not grow with the workspace. Readers and writers are not disturbed; the snapshot keeps VACUUM from
    removing rows until the end. Raises CommandError, StoreUnavailable."""
    async with connected(url) as connection:
        workspace_id = await find_workspace(connection, named)
        archive.begin(folder)
        with removed_on_failure(folder):
            async with within(connection, workspace_id, isolation="repeatable_read", readonly=True):
                row = await connection.fetchrow(transfer.WORKSPACE, workspace_id)
                generation = await transfer.active(connection)
                entries = list[TableEntry]()
                tables = [each for each in transfer.tables() if with_vectors or not transfer.is_vectors(each)]
                for table in tables:
                    advance(table.name, len(entries), len(tables))
                    entries.append(
                        await _export_table(connection, table, workspace_id, generation.number, folder, with_vectors)
                    )
            manifest = Manifest(
                id=str(uuid7()),
                created_at=datetime.now(UTC).isoformat(timespec="seconds"),
                service_version=__version__,
                revision=EXPECTED_REVISION,
                workspace={"id": str(workspace_id), "name": row["name"], "settings": json.loads(row["settings"])},
                embedder={"model": generation.model, "dimension": generation.dimension},
                with_vectors=with_vectors,
                tables=entries,
            )
            archive.finish(folder, manifest)
            return manifest


async def _export_table(
    connection: transfer.Connection,
    table: TableClause,
    workspace_id: UUID,
    generation: int,
    folder: Path,
    with_vectors: bool,
) -> TableEntry:
    with closing(archive.Writer(folder, table.name)) as writer:
        async for line in transfer.lines(connection, table, workspace_id, generation, with_vectors=with_vectors):
            writer.add(line)
        return TableEntry(table.name, transfer.columns(table), writer.rows, writer.end())


BATCH_ROWS, BATCH_CHARS = 1_000, 4_000_000
"""Maximum size of a statement: memory stays small."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. `with_vectors`: whether the vectors came along; `new_key`: the first key of a workspace that
    was made, None where it was there."""

    workspace_id: UUID
    rows: int
    with_vectors: bool
    new_key: str | None


async def import_export(
    url: str, folder: Path, named: str | None, *, advance: Advance, announce: Callable[[UUID, str], None]
) -> Imported:
    """Writes an export into the workspace with this id or name, by default the one with the export's own id, which is
    created if missing; `announce` is called with the first key of a new one, at once.

    All files are checked before anything is written, and the rows commit together. Raises CommandError,
    StoreUnavailable."""
    manifest = archive.read(folder)
    if manifest.revision > EXPECTED_REVISION:
        raise CommandError(
            f"The export was made at revision {manifest.revision} of the schema, and this version of Loxodon knows "
            f"{EXPECTED_REVISION}. Use the version that made it, or a newer one."
        )
    archive.verify(folder, manifest)
    async with connected(url) as connection:
        target, key = await _enter_target(connection, url, manifest, named)
        if key is not None:
            announce(target, key)
        generation = await transfer.active(connection)
        embedder = {"model": generation.model, "dimension": generation.dimension}
        with_vectors = manifest.with_vectors and manifest.embedder == embedder
        async with within(connection, target):
            if (filled := await transfer.find_filled_table(connection, target)) is not None:
                raise CommandError(
                    f"Workspace {target} is not empty: there is something in {filled}. Name an empty workspace with "
                    "--workspace."
                )
            rows = await _import_tables(
                connection, folder, manifest, target, generation.number, with_vectors=with_vectors, advance=advance
            )
            await transfer.raise_sequences(connection, target)
            await connection.execute(transfer.EMBED_LATER, target)
            await connection.execute(transfer.ADD_SETTINGS, target, json.dumps(manifest.workspace["settings"]))
        with suppress(asyncpg.InsufficientPrivilegeError, asyncpg.LockNotAvailableError):  # else the worker does it
            await connection.execute(transfer.PARTITIONS)
        return Imported(target, rows, with_vectors, key)


async def _enter_target(connection: Any, url: str, manifest: Manifest, named: str | None) -> tuple[UUID, str | None]:
    """The workspace, and its first key if it was made."""
    if named is not None:
        return await find_workspace(connection, named), None
    if await _name_of(connection, manifest.workspace_id) is not None:
        return manifest.workspace_id, None
    access = Access(url, citus=await connection.fetchval(str(citus.IS_CITUS)))
    database = Database(access, pool_size=1, pool_timeout_s=30)
    try:
        issued = await keys.create_workspace(
            database,
            manifest.workspace["name"],
            rights=keys.EVERY_RIGHT_IN_WORKSPACE,
            workspace_id=manifest.workspace_id,
        )
    finally:
        await database.close()
    return issued.workspace_id, issued.secret


async def _import_tables(
    connection: Any,
    folder: Path,
    manifest: Manifest,
    target: UUID,
    generation: int,
    *,
    with_vectors: bool,
    advance: Advance,
) -> int:
    """Writes the rows of all tables; returns how many."""
    done = 0
    for table in transfer.tables():
        entry = manifest.table(table.name)
        if entry is None or (transfer.is_vectors(table) and not with_vectors):
            continue
        known = set(transfer.columns(table))
        columns = tuple(column for column in entry.columns if column in known)
        statement = transfer.insert(table.name, columns, with_vectors=with_vectors)
        for batch in _batch_lines(archive.lines(folder, table.name)):
            try:
                await connection.execute(statement, target, f"[{','.join(batch)}]", generation)
            except asyncpg.PostgresError as exc:
                if (clash := transfer.clash(exc)) is None:
                    raise
                raise CommandError(f"{table.name}: {clash}. Import into a workspace that is empty.") from exc
            done += len(batch)
            advance(table.name, done, manifest.rows)
    return done


def _batch_lines(lines: Iterator[str]) -> Iterator[list[str]]:
    batch, chars = list[str](), 0
    for line in lines:
        batch.append(line)
        chars += len(line)
        if len(batch) >= BATCH_ROWS or chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch
