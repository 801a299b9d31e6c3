"""`loxodon doctor`: finds the configured database, has it examined and prints what was found."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict

from service.kit.settings import Settings
from service.launch.postgres import login_url
from service.postgres import doctor
from service.postgres.doctor import CheckResult
from service.postgres.roles import OWNER


def examine_database(settings: Settings, *, examples: int) -> list[CheckResult]:
    """Runs every check on the database of the settings and returns what it found. Without DATABASE_URL it is the
    embedded one: the server that runs, or one that is started for the time. Raises StoreUnavailable, SchemaMismatch or
    LaunchError."""
    with login_url(settings, OWNER) as url:
        return asyncio.run(doctor.examine(url, examples=examples))


def table(results: Sequence[CheckResult]) -> str:
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


def as_json(results: Sequence[CheckResult]) -> str:
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
