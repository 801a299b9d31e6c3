"""Proves clients/typescript against a running service: `make client-typescript`.

A copy in build/client-typescript is built and tested (its own tests, also through a server that loses connections),
packed, and installed from the archive into an empty folder, where a program uses it and its types are checked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import target
from bench.target import Service

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "clients" / "typescript"
BUILD = ROOT / "build" / "client-typescript"
USER = ROOT / "build" / "client-typescript-user"
MADE = ("node_modules", "dist", "build-test", "schema.ts", "routes.ts")
QUIET = ("--no-audit", "--no-fund", "--ignore-scripts")
STRICT = ("--strict", "--noEmit", "--allowJs", "--checkJs", "--target", "es2022", "--module", "nodenext")


def prove(service: Service) -> None:
    """Raises SystemExit with the output of what failed."""
    env = {"LOXODON_URL": service.url, "LOXODON_API_KEY": service.key}
    shutil.copytree(SOURCE, BUILD, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*MADE))
    if not _is_installed():
        _run(("npm", "ci", *QUIET), BUILD)
    env["LOXODON_OPENAPI"] = str(ROOT / "docs" / "openapi.json")
    _run(("npm", "run", "generate"), BUILD, env)
    _run(("npm", "test"), BUILD, env)
    _run(("npm", "pack"), BUILD, env)
    (archive,) = BUILD.glob("*.tgz")
    shutil.rmtree(USER, ignore_errors=True)
    USER.mkdir()
    (USER / "package.json").write_text('{"name": "user", "private": true, "type": "module"}')
    shutil.copy(SOURCE / "test" / "program.mjs", USER)
    _run(("npm", "install", *QUIET, "--offline", str(archive)), USER)  # it needs nothing else
    _run((str(BUILD / "node_modules" / ".bin" / "tsc"), *STRICT, "program.mjs"), USER)
    print(_run(("node", "program.mjs"), USER, env))


def _is_installed() -> bool:
    """Whether build/ has what the lock file pins."""
    kept = BUILD / "node_modules" / ".package-lock.json"
    lock = BUILD / "package-lock.json"
    return kept.exists() and kept.stat().st_mtime > lock.stat().st_mtime


def _run(command: Sequence[str], folder: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | (env or {}), capture_output=True, text=True, check=False, timeout=900
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-8000:]}\n{done.stderr[-6000:]}")
    return done.stdout


def main() -> int:
    if shutil.which("npm") is None:
        raise SystemExit("The client in TypeScript needs Node 18 or newer with npm.")
    with target.started() as service:
        prove(service)
    print("@loxodon/client: built, tested, packed, and used from the package.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
