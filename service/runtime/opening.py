"""Opens the resources of requests and jobs, once per process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from service.domain.errors import Misconfigured
from service.kit import process
from service.kit.fair_gate import RuleThreads
from service.kit.settings import Settings
from service.postgres import readiness
from service.postgres.engine import Access, Database
from service.postgres.replicas import open_replicas
from service.postgres.rights import find_access
from service.postgres.roles import APP, URL_VARIABLES, WORKER
from service.providers.choose import open_llm
from service.queue.wakeup import Wakeup
from service.runtime.background import running
from service.runtime.embedding import active_embedder, describe_embedder
from service.runtime.resources import Resources

POOL_TIMEOUT_S = 5.0
"""The longest wait for a free connection; then 503. Clients wait 25 s and try again."""

KEPT = 1
"""Connections that stay open, so that a request after a pause finds a warm one: some 18 MB each."""


async def app_access(settings: Settings, role: str) -> Access:
    """How this process reaches the database; raises Misconfigured when no URL is set, or that of a login that must
    not serve as `role`."""
    url = settings.database_url_of(worker=role == WORKER)
    if url is None:
        raise Misconfigured(f"{URL_VARIABLES[role]} is not set; `make run` starts an embedded database and sets it.")
    return await find_access(url, wanted_role=role, pooled=settings.database.pooler == "transaction")


async def preflight(settings: Settings, *, role: str = APP) -> str | None:
    """Checks the database before a server starts, so that a sentence can be printed in place of a traceback. Raises a
    ServiceError if it cannot be served (see open_resources). Returns a warning to print if the vectors were made by
    another embedder than the settings name."""
    database = Database(await app_access(settings, role), pool_size=1, pool_timeout_s=POOL_TIMEOUT_S)
    try:
        await readiness.check(database)
        return await describe_embedder(database, settings)
    finally:
        await database.close()


@asynccontextmanager
async def open_resources(settings: Settings, *, role: str = APP) -> AsyncIterator[Resources]:
    """Opens pool and providers. Refuses a role that row-level security does not hold back, and a schema that this code
    cannot serve."""
    async with AsyncExitStack() as stack:
        access = await app_access(settings, role)
        database = Database(access, pool_size=settings.database.pool_size, pool_timeout_s=POOL_TIMEOUT_S)
        stack.push_async_callback(database.close)
        await readiness.check(database)
        active = await stack.enter_async_context(active_embedder(database, settings, seldom_used=role == WORKER))
        llm = open_llm(settings)
        if llm is not None:
            stack.push_async_callback(llm.close)
        wakeup = Wakeup(_listen_url(settings, role))
        stack.push_async_callback(wakeup.close)
        rules = RuleThreads()
        stack.callback(rules.close)
        await stack.enter_async_context(running(_keep_giving_back(database, active.end_idle)))
        replicas = None
        if settings.database.read_urls and role == APP:  # jobs read what they are about to change
            replicas = await stack.enter_async_context(
                open_replicas(
                    access,
                    [url.get_secret_value() for url in settings.database.read_urls],
                    max_lag_s=settings.database.read_max_lag_s,
                    pool_size=settings.database.pool_size,
                )
            )
        now = active.now
        yield Resources(
            database,
            now.embedder,
            now.generation.number,
            llm,
            settings,
            wakeup,
            rules=rules,
            active=active,
            replicas=replicas,
        )


def _listen_url(settings: Settings, role: str) -> str:
    url = settings.database.listen_url
    chosen = url.get_secret_value() if url else settings.database_url_of(worker=role == WORKER)
    assert chosen is not None
    return chosen


log = structlog.get_logger(__name__)

# -- what a process gives back while nobody asks for anything ----------------------------------------------------------

# After a burst each of ten connections holds 7 to 15 MB of Postgres. A connection that is closed here is opened again
# with the next burst, in milliseconds.
IDLE_S = 30.0
"""How long something must be unused before it is released."""

POLL_S = 5.0

EndIdle = Callable[[float], Awaitable[int]]
"""Ends the processes that have been idle for this many seconds, and returns their number."""


async def give_back(database: Database, end_idle: EndIdle, *, keep: int, idle_s: float = IDLE_S) -> int:
    """Releases connections and processes that were unused for `idle_s`; returns how many."""
    ended = await database.pool.close_idle(idle_s, keep=keep) + await end_idle(idle_s)
    if ended:
        await asyncio.to_thread(process.release_memory)
    return ended


async def _keep_giving_back(database: Database, end_idle: EndIdle) -> None:
    while True:
        await asyncio.sleep(POLL_S)
        try:
            await give_back(database, end_idle, keep=KEPT)
        except Exception as exc:  # unused memory is then kept until the next round
            log.warning("idle_not_given_back", kind=type(exc).__name__)
