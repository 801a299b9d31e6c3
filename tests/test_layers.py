"""Imports point down: main > api, jobs > memory, retrieval > pipeline > curator > resources > db, providers > ..."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SERVICE = Path(__file__).resolve().parents[1] / "service"
HEIGHT = {
    "api": 6,
    "jobs": 6,
    "mcp": 5.5,
    "memory": 5,
    "retrieval": 5,
    "pipeline": 4,
    "curator": 3,
    "resources": 2,
    "opening": 2.5,
    "embedding": 1.7,
    "idle": 1.5,
    "scrape": 2.3,
    "db": 1,
    "providers": 0.9,  # db/ implements the protocols that providers/ declares
    "language": 0.5,
    "rule_threads": 0.5,
    "fair_gate": 0.4,
    "deadline": 0.4,
    "settings": 0.3,
    "postgres_url": 0.25,
    "domain": 0.2,
    "tracing": 0.1,
    "metrics": 0.1,
    "errors": 0,
    "faults": 0.1,
    "garbage": 0,
    "draining": 0,
    "late_imports": 0,
    "shipped": 0,
}
"""A part may import lower ones. Entry points (main, cli, launch, __main__, logs) stand above all."""

OUTSIDE_WORLD = frozenset({"sqlalchemy", "asyncpg", "httpx", "httpx2", "aiohttp", "socket", "os", "fastapi"})


def imports(file: Path) -> Iterator[str]:
    """The modules that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        if isinstance(node, ast.ImportFrom) and node.module == "service":
            yield from (f"service.{each.name}" for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def parts_of_service(file: Path) -> Iterator[str]:
    """The parts of the service that a file imports."""
    for name in imports(file):
        if name.startswith("service.") and "__version__" not in name:
            yield name.split(".")[1]


def test_no_import_points_up() -> None:
    wrong = []
    for part, height in HEIGHT.items():
        for file in [*SERVICE.glob(f"{part}.py"), *SERVICE.glob(f"{part}/**/*.py")]:
            if file.name != "__main__.py":
                up = {each for each in parts_of_service(file) if each != part and HEIGHT.get(each, 9) >= height}
                wrong += [f"{file.relative_to(SERVICE)} imports {each}" for each in sorted(up)]
    assert not wrong, "\n".join(["these imports point up:", *wrong])


def test_pure_parts_have_no_io() -> None:
    """language/ and domain/ know no database, no network, no settings, no clock of their own."""
    files = [file for part in ("language", "domain") for file in (SERVICE / part).glob("**/*.py")]
    wrong = [
        f"{file.relative_to(SERVICE)} imports {name}"
        for file in files
        for name in imports(file)
        if name.split(".")[0] in OUTSIDE_WORLD
    ]
    assert not wrong, "\n".join(wrong)
