"""Proves clients/typescript against a running service: `make client-typescript`.

A copy in build/client-typescript is built and tested (its own tests, also through a server that loses connections),
packed, and installed from the archive into an empty folder, where a program uses it and its types are checked.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from bench import target
from bench.target import Service
from tests.support.commands import run

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "clients" / "typescript"
BUILD = ROOT / "build" / "client-typescript"
USER = ROOT / "build" / "client-typescript-user"
MADE = ("node_modules", "dist", "build-test", "schema.ts", "routes.ts")
QUIET = ("--no-audit", "--no-fund", "--ignore-scripts")
DOCUMENT = {"LOXODON_OPENAPI": str(ROOT / "docs" / "openapi.json")}
PROGRAMS = """{"extends": "../tsconfig.json", "include": ["*.ts"],
"compilerOptions": {"types": ["node"], "rootDir": ".", "outDir": "js", "declaration": false,
"noUnusedLocals": false, "noUnusedParameters": false}}"""
STRICT = ("--strict", "--noEmit", "--allowJs", "--checkJs", "--target", "es2022", "--module", "nodenext")


def build() -> None:
    """Copies the client to build/ and compiles it there. Raises SystemExit with the output of what failed."""
    shutil.copytree(SOURCE, BUILD, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*MADE))
    if not _is_installed():
        run(("npm", "ci", *QUIET), BUILD)
    made = BUILD / "dist" / "index.js"
    sources = [Path(DOCUMENT["LOXODON_OPENAPI"]), *(path for path in SOURCE.rglob("*") if path.is_file())]
    if not made.exists() or made.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        run(("npm", "run", "build"), BUILD, DOCUMENT)


def run_programs(programs: Mapping[str, str], service: Service) -> None:
    """Checks the types of programs by their names and runs each. Raises SystemExit with what the first one printed."""
    folder = BUILD / "programs"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "tsconfig.json").write_text(PROGRAMS)
    named = {re.sub(r"\W+", "-", name): text for name, text in programs.items()}
    for name, text in named.items():
        (folder / f"{name}.ts").write_text(f"{text}\nexport {{}};\n")
    run((str(BUILD / "node_modules" / ".bin" / "tsc"), "-p", "."), folder)
    for name in named:
        run(("node", f"js/{name}.js"), folder, _environment(service))


def prove(service: Service) -> None:
    """Raises SystemExit with the output of what failed."""
    env = _environment(service) | DOCUMENT
    build()
    run(("npm", "test"), BUILD, env)
    run(("npm", "pack"), BUILD, env)
    (archive,) = BUILD.glob("*.tgz")
    shutil.rmtree(USER, ignore_errors=True)
    USER.mkdir()
    (USER / "package.json").write_text('{"name": "user", "private": true, "type": "module"}')
    shutil.copy(SOURCE / "test" / "program.mjs", USER)
    run(("npm", "install", *QUIET, "--offline", str(archive)), USER)  # it needs nothing else
    run((str(BUILD / "node_modules" / ".bin" / "tsc"), *STRICT, "program.mjs"), USER)
    print(run(("node", "program.mjs"), USER, env))


def _environment(service: Service) -> dict[str, str]:
    return {"LOXODON_URL": service.url, "LOXODON_API_KEY": service.key}


def _is_installed() -> bool:
    """Whether build/ has what the lock file pins."""
    kept = BUILD / "node_modules" / ".package-lock.json"
    lock = BUILD / "package-lock.json"
    return kept.exists() and kept.stat().st_mtime > lock.stat().st_mtime


def main() -> int:
    if shutil.which("npm") is None:
        raise SystemExit("The client in TypeScript needs Node 18 or newer with npm.")
    with target.started() as service:
        prove(service)
    print("@loxodon/client: built, tested, packed, and used from the package.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
