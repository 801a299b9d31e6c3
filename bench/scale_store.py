"""The big databases of bench.scale: kept on disk, opened again.

One folder per size in bench/.data (git-ignored): a cluster of its own with the schema of today, since migrations run at
every opening. Its key and workspace stand beside it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID

from bench import scale_data
from bench.superuser import SUPERUSER, login_url, trusting
from service.access.statements import keys
from service.kit.settings import Settings
from service.launch.postgres import EmbeddedPostgres
from service.postgres import migrate
from service.postgres.engine import Database
from service.postgres.rights import find_access
from service.postgres.roles import APP, MIGRATE_LOGIN
from service.providers.choose import embedder_model
from service.runtime.statements import generations

FOLDER = Path(__file__).parent / ".data"

# A quarter of a small server's memory, as one would set it; the embedded default of 128 MB is for a laptop.
SERVER = {
    "shared_buffers": "4GB",
    "effective_cache_size": "12GB",
    "random_page_cost": "1.1",
    "max_wal_size": "8GB",
    "maintenance_work_mem": "2GB",  # the graph must fit, or its building falls to a slow path
    "max_parallel_maintenance_workers": "1",
}
LOADING = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "shared_buffers": "1GB"}


@dataclass(frozen=True, slots=True)
class Store:
    """`url`: SQLAlchemy URL of the superuser. `took`: seconds of each step of the building."""

    url: str
    workspace: UUID
    key: str
    size: int
    took: dict[str, float]

    @property
    def database(self) -> str:
        return self.url.replace("+asyncpg", "")


@contextmanager
def opened(size: int) -> Iterator[Store]:
    """The database of the size: the kept one, or a new one built now."""
    folder = FOLDER / f"{size}"
    note = folder / "scale.json"
    if not note.exists():
        _build(size, folder, note)
    kept = json.loads(note.read_text())
    with EmbeddedPostgres(folder, settings=SERVER | trusting(folder)) as server:
        migrate.upgrade(server.url(MIGRATE_LOGIN), Settings.from_env({}))
        yield Store(server.url(SUPERUSER), UUID(kept["workspace"]), kept["key"], size, kept["took"])


def _build(size: int, folder: Path, note: Path) -> None:
    settings = Settings.from_env({})
    folder.mkdir(parents=True, exist_ok=True)
    print(f"Building {size:,} memories in {folder} ...", flush=True)
    with EmbeddedPostgres(folder, settings=SERVER | LOADING | trusting(folder)) as server:
        url = server.url(SUPERUSER)
        migrate.upgrade(server.url(MIGRATE_LOGIN), settings)
        found = scale_data.sources(FOLDER)
        store = asyncio.run(_fill(url, settings, size, found))
        note.write_text(json.dumps(asdict(store), default=str, indent=1))


async def _fill(url: str, settings: Settings, size: int, found: scale_data.Sources) -> Store:
    await generations.record_first(url, embedder_model(settings), settings.embedder.dim)
    database = Database(
        await find_access(login_url(url, APP), wanted_role=APP, pooled=False), pool_size=1, pool_timeout_s=10
    )
    issued = await keys.create_workspace(database, f"scale {size}", rights=keys.EVERY_RIGHT)
    await database.close()
    began = time.perf_counter()
    took = await scale_data.load(url.replace("+asyncpg", ""), issued.workspace_id, scale_data.users(size), size, found)
    took["all"] = time.perf_counter() - began
    return Store("", issued.workspace_id, issued.secret, size, took)
