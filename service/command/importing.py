"""`loxodon import` of an export: into an empty workspace, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]

from service.access.statements import keys
from service.command import archive, transfer, workspace_access
from service.command.archive import Manifest
from service.command.output import Advance
from service.command.problems import CommandError
from service.postgres.engine import Access, Database
from service.postgres.readiness import EXPECTED_REVISION

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
    async with workspace_access.connected(url) as connection:
        target, key = await _target(connection, url, manifest, named)
        if key is not None:
            announce(target, key)
        generation = await transfer.active(connection)
        embedder = {"model": generation.model, "dimension": generation.dimension}
        with_vectors = manifest.with_vectors and manifest.embedder == embedder
        async with connection.transaction():
            if (filled := await transfer.find_filled_table(connection, target)) is not None:
                raise CommandError(
                    f"Workspace {target} is not empty: there is something in {filled}. Name an empty workspace with "
                    "--workspace."
                )
            rows = await _write(
                connection, folder, manifest, target, generation.number, with_vectors=with_vectors, advance=advance
            )
            await transfer.raise_sequences(connection, target)
            await connection.execute(transfer.EMBED_LATER, target)
        with suppress(asyncpg.InsufficientPrivilegeError, asyncpg.LockNotAvailableError):  # else the worker does it
            await connection.execute(transfer.PARTITIONS)
        return Imported(target, rows, with_vectors, key)


async def _target(connection: Any, url: str, manifest: Manifest, named: str | None) -> tuple[UUID, str | None]:
    """The workspace, and its first key if it was made. The session has entered it."""
    if named is not None:
        workspace_id = await workspace_access.choose(connection, named)
        await workspace_access.enter(connection, workspace_id)
        return workspace_id, None
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
            await keys.change_workspace(session, name=None, settings=manifest.workspace["settings"])
    finally:
        await database.close()
    return issued.workspace_id, issued.secret


async def _write(
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
        for batch in _batches(archive.lines(folder, table.name)):
            try:
                await connection.execute(statement, target, f"[{','.join(batch)}]", generation)
            except asyncpg.PostgresError as exc:
                if (said := transfer.clash(exc)) is None:
                    raise
                raise CommandError(f"{table.name}: {said}. Import into a workspace that is empty.") from exc
            done += len(batch)
            advance(table.name, done, manifest.rows)
    return done


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
