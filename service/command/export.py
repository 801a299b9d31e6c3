"""`loxodon export`: one workspace into a folder, from one snapshot."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from sqlalchemy import TableClause
from uuid_utils.compat import uuid7

from service import __version__
from service.command import archive, transfer, workspace_access
from service.command.archive import Manifest, TableEntry
from service.command.output import Advance
from service.launch.data_dir import removed_on_failure
from service.postgres.readiness import EXPECTED_REVISION


async def export(url: str, folder: Path, named: str | None, *, with_vectors: bool, advance: Advance) -> Manifest:
    """Writes the workspace with this id or name (None: the only one) and returns the manifest. `url`: of the worker.

    Memory does not grow with the workspace. Readers and writers are not disturbed; the snapshot keeps VACUUM from
    removing rows until the end. Raises CommandError, StoreUnavailable."""
    async with workspace_access.connected(url) as connection:
        workspace_id = await workspace_access.choose(connection, named)
        await workspace_access.enter(connection, workspace_id)
        archive.begin(folder)
        with removed_on_failure(folder):
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                row = await connection.fetchrow(transfer.WORKSPACE, workspace_id)
                generation = await transfer.active(connection)
                entries = list[TableEntry]()
                tables = [each for each in transfer.tables() if with_vectors or not transfer.is_vectors(each)]
                for table in tables:
                    advance(table.name, len(entries), len(tables))
                    entries.append(
                        await _write(connection, table, workspace_id, generation.number, folder, with_vectors)
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


async def _write(
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
