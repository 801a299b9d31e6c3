"""Do imports point down? main > api, jobs > memory, retrieval > pipeline > curator > language > resources > db ..."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVICE = Path(__file__).resolve().parents[1] / "service"
BELOW = {
    "api": 6,
    "jobs": 6,
    "memory": 5,
    "retrieval": 5,
    "pipeline": 4,
    "curator": 3,
    "resources": 2,
    "threads": 1,
    "db": 1,
    "providers": 0.9,  # beside db/, which fills the ports that providers/ declares
    "language": 0.5,
    "settings": 0.3,
    "domain": 0.2,
    "errors": 0,
}
"""The higher may import the lower. Entry points (main, cli, launch, __main__, logs) stand above all."""


def imports(file: Path) -> Iterator[str]:
    """The parts of the service that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"service.{each.name}" for each in node.names] if node.module == "service" else [node.module]
        for name in names:
            if name.startswith("service.") and "__version__" not in name:
                yield name.split(".")[1]


FILES = [file for part in BELOW for file in [*SERVICE.glob(f"{part}.py"), *SERVICE.glob(f"{part}/**/*.py")]]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SERVICE)))
def test_no_arrow_points_up(file: Path) -> None:
    part = file.relative_to(SERVICE).parts[0].removesuffix(".py")
    if file.name == "__main__.py":
        return
    for other in imports(file):
        assert other == part or BELOW.get(other, 9) < BELOW[part], f"{part} must not import {other}"


def test_pure_parts_know_no_world() -> None:
    """language/ and domain/ have no I/O: no database, no network, no settings, no clock of their own."""
    for part in ("language", "domain"):
        for file in (SERVICE / part).glob("**/*.py"):
            tree = ast.parse(file.read_text())
            for node in ast.walk(tree):
                names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                for name in names:
                    assert name.split(".")[0] not in {"sqlalchemy", "asyncpg", "httpx", "socket", "os", "fastapi"}, file
