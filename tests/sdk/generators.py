"""The generators: how each makes a client, what checks its types, and what walks through the service with it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import commands
from tests.support.commands import run

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "openapi.json"
BUILD = ROOT / "build" / "sdk"
HERE = ROOT / "tests" / "sdk"
PINNED = ROOT / "requirements" / "sdk.txt"
TOOLS = BUILD / "tools" / "bin"
NODE = BUILD / "node_modules" / ".bin"
TSC = (
    *(str(NODE / "tsc"), "--strict", "--skipLibCheck", "--types", "node"),
    *("--rootDir", ".", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext"),
    *("--outDir", "out"),
)


@dataclass(frozen=True, slots=True)
class Generator:
    """The commands run in `build/sdk`; `check` proves the types, `walk` is the program that uses the client."""

    generate: Sequence[str]
    check: Sequence[str]
    walk: Sequence[str]

    def prove(self, url: str, key: str) -> None:
        """Generates, checks and walks; raises SystemExit with the output of what failed."""
        for command in (self.generate, self.check, self.walk):
            run(command, BUILD, {"LOXODON_URL": url, "LOXODON_API_KEY": key, "MYPYPATH": "opc:ogp"})


def walk(name: str) -> str:
    """The walk of a client in TypeScript, beside what it imports."""
    shutil.copy(HERE / "walks" / f"{name}.ts", BUILD)
    return f"{name}.ts"


def _python_walk(name: str) -> tuple[str, str]:
    return str(TOOLS / "python"), str(HERE / "walks" / f"{name}.py")


GENERATORS = {
    "openapi-python-client": Generator(
        (
            str(TOOLS / "openapi-python-client"),
            "generate",
            "--path",
            str(DOCUMENT),
            "--overwrite",
            "--output-path",
            "opc",
        ),
        (str(TOOLS / "mypy"), "--config-file=", "--strict", str(HERE / "walks" / "openapi_python_client.py")),
        _python_walk("openapi_python_client"),
    ),
    "openapi-generator-python": Generator(
        (
            *(str(TOOLS / "openapi-generator-cli"), "generate", "-g", "python", "-i", str(DOCUMENT)),
            *("-o", "ogp", "--package-name", "loxodon_generated"),
        ),
        (
            str(TOOLS / "mypy"),
            "--config-file=",
            "--follow-imports=silent",
            str(HERE / "walks" / "openapi_generator_python.py"),
        ),
        _python_walk("openapi_generator_python"),
    ),
    "openapi-typescript": Generator(
        (str(NODE / "openapi-typescript"), str(DOCUMENT), "-o", "schema.d.ts"),
        (*TSC, "openapi_fetch.ts"),
        ("node", "out/openapi_fetch.js"),
    ),
    "openapi-generator-typescript": Generator(
        (
            *(str(TOOLS / "openapi-generator-cli"), "generate", "-g", "typescript-fetch", "-i", str(DOCUMENT)),
            *("-o", "ogt", "--additional-properties=importFileExtension=.js"),
        ),
        (*TSC, "openapi_generator_fetch.ts"),
        ("node", "out/openapi_generator_fetch.js"),
    ),
    "orval": Generator(
        (
            *(str(NODE / "orval"), "--input", str(DOCUMENT), "--output", "orval/client.ts"),
            *("--client", "fetch", "--mode", "single"),
        ),
        (*TSC, "orval_fetch.ts"),
        ("node", "out/orval_fetch.js"),
    ),
    "hey-api": Generator(
        (str(NODE / "openapi-ts"), "-i", str(DOCUMENT), "-o", "hey", "-c", "@hey-api/client-fetch"),
        (*TSC, "hey_api.ts"),
        ("node", "out/hey_api.js"),
    ),
}
"""By name. The clients in TypeScript need node."""

WALKS_TS = ("openapi_fetch", "openapi_generator_fetch", "orval_fetch", "hey_api")


def install_python() -> None:
    """Makes build/sdk/tools hold what requirements/sdk.txt pins, unless it does."""
    commands.install_python(BUILD / "tools", PINNED)


def install_node() -> None:
    """Installs what package-lock.json pins, unless it is there, and lays out the walks."""
    commands.install_node(BUILD, HERE / "package-lock.json")
    # tells hey-api that imports need their extension
    (BUILD / "tsconfig.json").write_text('{"compilerOptions": {"module": "nodenext", "moduleResolution": "nodenext"}}')
    for name in WALKS_TS:
        walk(name)


def lint() -> None:
    """The document without an error of spectral and redocly."""
    (BUILD / "spectral.yaml").write_text('extends: ["spectral:oas"]\n')
    run(
        (str(NODE / "spectral"), "lint", "--ruleset", "spectral.yaml", "--fail-severity", "error", str(DOCUMENT)), BUILD
    )
    run((str(NODE / "redocly"), "lint", "--max-problems", "20", str(DOCUMENT)), BUILD)


def has_node() -> bool:
    return shutil.which("npm") is not None
