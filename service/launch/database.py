"""Commands on the configured database: bring it up to date or wait until it is, examine it, change its embedder."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict

from service.access.statements import keys
from service.domain.errors import ServiceError
from service.kit.settings import Settings
from service.launch.postgres import EmbeddedPostgres, login_url
from service.postgres import doctor, migrate
from service.postgres.doctor import CheckResult
from service.postgres.roles import MIGRATE_LOGIN, OWNER
from service.providers.choose import embedder_dimension, embedder_model
from service.providers.presets import secret
from service.runtime.opening import preflight
from service.runtime.statements import generations
from service.upkeep.statements import reembedding

PAUSE_S = 2.0
REVOKED = (
    "The first key (LOXODON_BOOTSTRAP_API_KEY, or the file first-key in the data folder) was revoked and stays so. "
    "Use another key; for a new first key set another value, or remove the file."
)


def migrate_database(settings: Settings) -> None:
    """Runs the migrations as the owner, then makes sure that the key of LOXODON_BOOTSTRAP_API_KEY, if set, exists.

    Without DATABASE_URL it starts the embedded server, which must not be running: a running one is migrated already.
    Raises StoreUnavailable when the database cannot be used.
    """
    named = settings.database.owner_url or settings.database.url
    if named is not None:
        _bring_up_to_date(named.get_secret_value(), settings)
        return
    with EmbeddedPostgres(settings.server.data_dir) as server:
        _bring_up_to_date(server.url(MIGRATE_LOGIN), settings)


def wait_for_schema(settings: Settings, *, role: str, timeout_s: float) -> None:
    """Returns when a process of the role could start: the database answers, and has a schema that this version can
    serve. Prints what it waits for whenever that changes. After `timeout_s` it raises the error that the start would.
    """
    until, printed = time.monotonic() + timeout_s, ""
    while True:
        try:
            asyncio.run(preflight(settings, role=role))
            return
        except ServiceError as exc:
            if time.monotonic() + PAUSE_S > until:
                raise
            if exc.detail != printed:
                print(f"waiting: {exc.detail}", flush=True)
                printed = exc.detail
        time.sleep(PAUSE_S)


def _bring_up_to_date(url: str, settings: Settings) -> None:
    migrate.upgrade(url, settings)
    asyncio.run(generations.record_first(url, embedder_model(settings), settings.embedder.dim))
    first_key = secret(settings.server.bootstrap_api_key)
    if first_key is not None and not asyncio.run(keys.ensure_admin_key(url, first_key)):
        print(REVOKED, flush=True)


def examine_database(settings: Settings, *, examples: int) -> list[CheckResult]:
    """Runs every check on the database of the settings and returns what it found. Without DATABASE_URL it is the
    embedded one: the server that runs, or one that is started for the time. Raises StoreUnavailable, SchemaMismatch or
    LaunchError."""
    with login_url(settings, OWNER) as url:
        return asyncio.run(doctor.examine(url, examples=examples))


def format_table(results: Sequence[CheckResult]) -> str:
    """The results for a person: a line per check, with the broken rows below it."""
    width = max(len(result.check.name) for result in results)
    lines = []
    for result in results:
        state = f"{result.broken} broken" if result.broken else "ok"
        lines.append(f"{result.check.name:<{width}}  {state:>12}  {result.check.rule}")
        lines += [f"{'':<{width}}  {'':>12}    {_where(row.workspace_id)}{row.id}" for row in result.examples]
        if 0 < len(result.examples) < result.broken:
            lines.append(f"{'':<{width}}  {'':>12}    and {result.broken - len(result.examples)} more")
    broken = sum(1 for result in results if result.broken)
    took_s = sum(result.took_s for result in results)
    verdict = f"{broken} of {len(results)} checks failed" if broken else f"all {len(results)} checks hold"
    return "\n".join([*lines, "", f"{verdict} ({took_s:.1f} s)"])


def format_json(results: Sequence[CheckResult]) -> str:
    """The results for a program, as docs/doctor.md describes."""
    checks = [
        {
            "name": result.check.name,
            "rule": result.check.rule,
            "broken": result.broken,
            "examples": [asdict(row) for row in result.examples],
            "took_s": round(result.took_s, 3),
        }
        for result in results
    ]
    return json.dumps({"whole": doctor.is_whole(results), "checks": checks}, indent=1, default=str)


def _where(workspace_id: object) -> str:
    return f"workspace {workspace_id}  " if workspace_id is not None else ""


PROGRESS = "GET /v1/jobs/reembed?system=true (right metrics) shows its progress."


def begin_reembedding(settings: Settings, *, again: bool = False) -> str:
    """Begins the change and returns a sentence for the terminal. Raises Conflict or StoreUnavailable."""
    model, dimension = embedder_model(settings), embedder_dimension(settings)
    with login_url(settings, OWNER) as url:
        generation, queued = asyncio.run(reembedding.begin(url, model, dimension, again=again))
    what = "A worker makes" if queued else "A worker is making"
    return (
        f"{what} the vectors of {generation}, as generation {generation.number}. Searches use the old ones until "
        f"all are there, and the new ones from then on. {PROGRESS}"
    )


def roll_back_reembedding(settings: Settings) -> str:
    """Goes back to the previous vectors and returns a sentence for the terminal. Raises Conflict or
    StoreUnavailable."""
    with login_url(settings, OWNER) as url:
        active, given_up = asyncio.run(reembedding.roll_back(url))
    return (
        f"Searches use the vectors of {active} (generation {active.number}); those of {given_up} (generation "
        f"{given_up.number}) are kept. A worker makes what is missing. Set EMBEDDER_PROVIDER and EMBEDDER_MODEL back."
    )


def drop_old_vectors(settings: Settings) -> str:
    """Drops the old vectors and returns a sentence for the terminal. Raises Conflict or StoreUnavailable."""
    with login_url(settings, OWNER) as url:
        dropped = asyncio.run(reembedding.drop_retired(url))
    return f"A worker deletes the vectors of {' and of '.join(map(str, dropped))}. {PROGRESS}"
