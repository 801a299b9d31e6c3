"""Searches of a user alone, with what the workspace shares, and of a user or an agent.

    python -m bench.sharing [--users 100] [--rows 1000] [--shared 1000] [--questions 60]

A database of its own, in a temporary folder. Each question is asked in turns in every way, warm: milliseconds of a
whole search by the service's own function, without HTTP, with the question's embedding known already. `binary`: the
same with every scope taken for a large one.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]

from bench import scale_data, scale_store
from bench.numbers import percentile, table
from bench.scale_data import Sources
from bench.superuser import SUPERUSER, login_url, trusting
from service.access.statements import keys
from service.domain import sizes
from service.domain.query import Query
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.kit.settings import Settings
from service.launch.postgres import EmbeddedPostgres
from service.postgres import migrate
from service.postgres.engine import Database
from service.postgres.rights import find_access
from service.postgres.roles import APP, MIGRATE_LOGIN
from service.providers.choose import embedder_model
from service.runtime.opening import open_resources
from service.runtime.resources import Resources
from service.runtime.statements import generations
from service.search.search import search

SIZES: Final = {"exact": 20_000, "binary": 500}


OF_AN_AGENT: Final = (
    "UPDATE memory SET agent_id = 'guide' WHERE user_id IS NOT NULL AND hash < '04'",
    """UPDATE memory_vector v SET agent_id = 'guide' FROM memory m
       WHERE m.workspace_id = v.workspace_id AND m.id = v.memory_id AND m.agent_id = 'guide'""",
    "VACUUM (ANALYZE) memory",
    "VACUUM (ANALYZE) memory_vector",
)


def ways(workspace: UUID, user: str) -> dict[str, Scope]:
    """The scopes that are compared."""
    alone = Scope(workspace, user_id=user)
    return {
        "user": alone,
        "user and shared": replace(alone, include_shared=True),
        "shared": Scope(workspace, include_shared=True),
        "user or agent, and shared": Scope(workspace, user, "guide", match="any", include_shared=True),
    }


async def prepare(url: str, owned: Sequence[scale_data.Owned], found: Sources, settings: Settings) -> UUID:
    """The workspace with its rows, one in 64 of the users' an agent's too."""
    await generations.record_first(url, embedder_model(settings), settings.embedder.dim)
    access = await find_access(login_url(url, APP), wanted_role=APP, pooled=False)
    database = Database(access, pool_size=1, pool_timeout_s=10)
    issued = await keys.create_workspace(database, "sharing", rights=keys.EVERY_RIGHT)
    await database.close()
    superuser = url.replace("+asyncpg", "")
    await scale_data.load(superuser, issued.workspace_id, owned, 7, found)
    connection = await asyncpg.connect(superuser)
    for statement in OF_AN_AGENT:
        await connection.execute(statement)
    await connection.close()
    return issued.workspace_id


async def timed(res: Resources, scope: Scope, words: str) -> tuple[float, str, int]:
    """Milliseconds, the way vectors were searched, and the number of hits."""
    query = Query(scope, CleanText(words), 10)
    await search(query, res)
    began = time.perf_counter()
    found = await search(query, res)
    return (time.perf_counter() - began) * 1000, found.vector_path, len(found.hits)


async def measure(url: str, workspace: UUID, users: int, found: Sources, count: int) -> str:
    rows: list[list[object]] = []
    settings = Settings.from_env({"LOXODON_DATABASE_URL": login_url(url, APP), "LOXODON_POOL_SIZE": "1"})
    async with open_resources(settings) as opened:
        for name, sizes.EXACT_ROWS in SIZES.items():
            res = replace(opened, scope_summaries={})
            took: dict[str, list[float]] = {}
            paths: dict[str, set[str]] = {}
            for at, words in enumerate(found.questions[:count]):
                for way, scope in ways(workspace, f"user-{at % users}").items():
                    ms, path, hits = await timed(res, scope, words)
                    assert hits == 10, (way, hits)
                    took.setdefault(way, []).append(ms)
                    paths.setdefault(way, set()).add(path)
            for way, each in took.items():
                shown = (f"{percentile(each, share):.1f}" for share in (0.50, 0.95))
                ratio = percentile(each, 0.5) / percentile(took["user"], 0.5)
                rows.append([name, way, *shown, f"{ratio:.2f}", ", ".join(sorted(paths[way]))])
    return table(["scopes", "who", "p50", "p95", "p50 to a user's", "path"], rows)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000, help="memories of each user")
    parser.add_argument("--shared", type=int, default=1_000, help="memories that the workspace shares")
    parser.add_argument("--questions", type=int, default=60)
    options = parser.parse_args(words)
    found, settings = scale_data.sources(scale_store.FOLDER), Settings.from_env({})
    owned: list[scale_data.Owned] = [(f"user-{at}", options.rows) for at in range(options.users)]
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedPostgres(Path(folder) / "pg", settings=scale_store.LOADING | trusting(Path(folder))) as server,
    ):
        migrate.upgrade(server.url(MIGRATE_LOGIN), settings)
        workspace = asyncio.run(prepare(server.url(SUPERUSER), [*owned, (None, options.shared)], found, settings))
        print(asyncio.run(measure(server.url(SUPERUSER), workspace, options.users, found, options.questions)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
