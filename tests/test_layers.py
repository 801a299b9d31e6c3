"""Rooms import downwards only: no room imports one that stands as high or higher, so there is no circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SERVICE = Path(__file__).resolve().parents[1] / "service"

LEVELS = (
    ("domain",),
    ("kit", "language"),
    ("observability", "redaction"),
    ("postgres",),
    ("queue",),
    ("providers",),
    ("runtime",),
    ("access",),
    ("http",),
    ("working",),
    ("understanding",),
    ("conversations",),
    ("graph",),
    ("memories",),
    ("cognition",),
    ("search",),
    ("erasure",),
    ("upkeep",),
    ("intake",),
    ("feed", "tenants", "jobs"),
    ("compat", "console", "mcp"),
    ("worker",),
    ("app",),
    ("launch",),
    ("command",),
)
"""From the bottom to the top; rooms of one level do not import each other."""

HEIGHT = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}

PURE = ("domain", "language")
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


def rooms_imported_by(file: Path) -> Iterator[str]:
    for name in imports(file):
        if name.startswith("service.") and "__version__" not in name:
            yield name.split(".")[1]


def test_every_room_has_its_level() -> None:
    assert {path.name for path in SERVICE.iterdir() if path.is_dir() and path.name[0] != "_"} == HEIGHT.keys()


def test_no_import_points_up() -> None:
    wrong = []
    for room, height in HEIGHT.items():
        for file in (SERVICE / room).glob("**/*.py"):
            up = {other for other in rooms_imported_by(file) if other != room and HEIGHT[other] >= height}
            wrong += [f"{file.relative_to(SERVICE)} imports {other}" for other in sorted(up)]
    assert not wrong, "\n".join(["these imports point up:", *wrong])


def test_pure_rooms_have_no_io() -> None:
    """They know no database, no network, no settings, no clock of their own."""
    files = [file for room in PURE for file in (SERVICE / room).glob("**/*.py")]
    wrong = [
        f"{file.relative_to(SERVICE)} imports {name}"
        for file in files
        for name in imports(file)
        if name.split(".")[0] in OUTSIDE_WORLD
    ]
    assert not wrong, "\n".join(wrong)


LEAVE_THE_WALL = frozenset({"access/workspace_jobs.py", "understanding/model_calls.py"})
"""They read or write what belongs to the workspace as a whole: its settings, its account for the language model."""


def test_few_leave_the_wall_of_a_request() -> None:
    files = [file for file in SERVICE.rglob("*.py") if ".without_wall()" in file.read_text()]
    assert {str(file.relative_to(SERVICE)) for file in files} == LEAVE_THE_WALL


def test_routes_leave_the_database_to_verbs() -> None:
    """A route parses, calls one verb and answers. The rooms that only translate another API have nothing but routes and
    their helpers, which may name a record of a statement."""
    wrong = []
    for room in HEIGHT:
        for file in (SERVICE / room).glob("**/*.py"):
            is_route = "APIRouter(" in file.read_text()
            if not is_route and room not in ("compat", "mcp"):
                continue
            statements = r"\.statements" if is_route else r"\.statements$"
            read = [name for name in imports(file) if re.search(statements, name)]
            wrong += [f"{file.relative_to(SERVICE)} imports {name}" for name in read]
            opened = re.search(r"\bdb\.(?:begin|read|snapshot)\(", file.read_text())
            wrong += [f"{file.relative_to(SERVICE)} opens a transaction"] if opened else []
    assert not wrong, "\n".join(sorted(wrong))
