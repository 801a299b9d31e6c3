"""`loxodon import` of an export: into a workspace that is empty, or that this import has begun to fill.

Every batch of rows commits together with the note how far the import is, in the table `operation`. So a second try goes
on where the first one was killed, and no row comes twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]

from service.access.statements import keys
from service.command import archive, transfer, workspace_access
from service.command.archive import Manifest, TableEntry
from service.command.output import Advance
from service.command.problems import CommandError
from service.postgres.engine import Access, Database
from service.postgres.readiness import EXPECTED_REVISION

BATCH_ROWS, BATCH_CHARS = 1_000, 4_000_000
"""Maximum size of a transaction: memory stays small, and little is repeated after a crash."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. `resumed`: rows that an earlier try had written; `with_vectors`: whether the vectors came
    along; `new_key`: the first key of a workspace that was made, None where it was there."""

    workspace_id: UUID
    rows: int
    resumed: int
    with_vectors: bool
    new_key: str | None


@dataclass(slots=True)
class _Import:
    connection: Any
    folder: Path
    manifest: Manifest
    workspace_id: UUID
    generation: int
    with_vectors: bool
    advance: Advance
    done: int = 0

    async def write_all(self, table: str | None, rows: int) -> None:
        """Everything after the first `rows` rows of `table`; None: from the beginning."""
        wanted = [each for each in transfer.tables() if self.manifest.table(each.name)]
        at = next((place for place, each in enumerate(wanted) if each.name == table), 0)
        for place, each in enumerate(wanted):
            entry = self.manifest.table(each.name)
            assert entry is not None, "it was just looked for"
            skipped = entry.rows if place < at else rows if place == at and table else 0
            self.done += skipped
            if skipped < entry.rows and (self.with_vectors or not each.is_vectors):
                await self._write(each.name, entry, skipped)

    async def _write(self, name: str, entry: TableEntry, rows: int) -> None:
        known = set(transfer_columns(name))
        columns = tuple(each for each in entry.columns if each in known)
        statement = transfer.insert(name, columns, with_vectors=self.with_vectors)
        for batch in _batches(islice(archive.lines(self.folder, name), rows, None)):
            rows += len(batch)
            try:
                async with self.connection.transaction():
                    await self.connection.execute(statement, self.workspace_id, f"[{','.join(batch)}]", self.generation)
                    await self.connection.execute(
                        transfer.NOTE_IMPORT, self.workspace_id, UUID(self.manifest.id), name, rows
                    )
            except asyncpg.PostgresError as exc:
                if (said := transfer.clash(exc)) is None:
                    raise
                raise CommandError(f"{name}: {said}. Import into a workspace that is empty.") from exc
            self.done += len(batch)
            self.advance(name, self.done, self.manifest.rows)


async def import_export(
    url: str, folder: Path, named: str | None, *, advance: Advance, announce: Callable[[UUID, str], None]
) -> Imported:
    """Writes an export into the workspace with this id or name, by default the one with the export's own id, which is
    created if missing; `announce` is called with the first key of a new one, at once.

    All files are checked before anything is written. Raises CommandError, StoreUnavailable."""
    manifest = archive.read(folder)
    if manifest.revision > EXPECTED_REVISION:
        raise CommandError(
            f"The export was made at revision {manifest.revision} of the schema, and this version of Loxodon knows "
            f"{EXPECTED_REVISION}. Use the version that made it, or a newer one."
        )
    archive.verify(folder, manifest)
    async with workspace_access.connected(url) as connection:
        target, key = await _target(connection, url, manifest, named)
        if key is not None:
            announce(target, key)
        if not await connection.fetchval(transfer.LOCK, str(target)):
            raise CommandError(f"Another import into workspace {target} is running.")
        table, rows = await _begin(connection, target, manifest)
        generation = await transfer.active(connection)
        with_vectors = manifest.with_vectors and manifest.embedder == {
            "model": generation.model,
            "dimension": generation.dimension,
        }
        work = _Import(connection, folder, manifest, target, generation.number, with_vectors, advance)
        if table != FINISHED:
            await work.write_all(table, rows)
            await _finish(connection, target, manifest)
        resumed = manifest.rows if table == FINISHED else _before(manifest, table, rows)
        return Imported(target, manifest.rows - resumed, resumed, with_vectors, key)


FINISHED = "(all)"


async def _target(connection: Any, url: str, manifest: Manifest, named: str | None) -> tuple[UUID, str | None]:
    """The workspace, and its first key if it was made. The session has entered it."""
    if named is not None:
        found = await workspace_access.chosen(connection, named)
        await workspace_access.enter(connection, found)
        return found, None
    if await workspace_access.exists(connection, manifest.workspace_id):
        return manifest.workspace_id, None
    database = Database.open(Access(url), pool_size=1, pool_timeout_s=30)
    try:
        issued = await keys.create_workspace(
            database,
            manifest.workspace["name"],
            rights=keys.EVERY_RIGHT_IN_WORKSPACE,
            workspace_id=manifest.workspace_id,
        )
        async with database.begin(issued.workspace_id) as session:
            await keys.change_workspace(
                session, issued.workspace_id, name=None, settings=manifest.workspace["settings"]
            )
    finally:
        await database.close()
    return issued.workspace_id, issued.secret


async def _begin(connection: Any, target: UUID, manifest: Manifest) -> tuple[str | None, int]:
    """Where an earlier try stopped: the table, and how many of its rows are written."""
    row = await connection.fetchrow(transfer.IMPORT, target, UUID(manifest.id))
    if row is None:
        if (table := await transfer.filled(connection, target)) is not None:
            raise CommandError(
                f"Workspace {target} is not empty (there is something in {table}), and this import did not begin "
                "there. Name an empty workspace with --workspace."
            )
        await connection.execute(transfer.BEGIN_IMPORT, target, UUID(manifest.id))
        return None, 0
    if row["state"] == "done":
        return FINISHED, 0
    progress = json.loads(row["progress"])
    return progress["table"], progress["rows"]


async def _finish(connection: Any, target: UUID, manifest: Manifest) -> None:
    await transfer.raise_sequences(connection, target)
    async with connection.transaction():
        await connection.execute(transfer.EMBED_LATER, target)
        result = json.dumps({"rows": manifest.rows, "exported_from": str(manifest.workspace_id)})
        await connection.execute(transfer.END_IMPORT, target, UUID(manifest.id), result)
    with suppress(asyncpg.InsufficientPrivilegeError, asyncpg.LockNotAvailableError):  # else the worker does it
        await connection.execute(transfer.PARTITIONS)


def _before(manifest: Manifest, table: str | None, rows: int) -> int:
    """How many rows come before this one."""
    if table is None:
        return 0
    names = [each.name for each in transfer.tables()]
    earlier = set(names[: names.index(table)])
    return rows + sum(each.rows for each in manifest.tables if each.name in earlier)


def transfer_columns(name: str) -> tuple[str, ...]:
    return next(each.columns for each in transfer.tables() if each.name == name)


def _batches(lines: Iterator[str]) -> Iterator[list[str]]:
    batch, chars = list[str](), 0
    for line in lines:
        batch.append(line)
        chars += len(line)
        if len(batch) >= BATCH_ROWS or chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch
