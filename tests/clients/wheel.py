"""The wheel of the Python client: built, installed in an environment of its own, and used as its README says."""

from __future__ import annotations

import re
import sys
import venv
from pathlib import Path

from bench.target import Service
from tests.support.commands import run

CLIENT = Path(__file__).resolve().parents[2] / "clients" / "python"
FIRST_SESSION = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def build_wheel(folder: Path) -> Path:
    """Builds in a copy, so that nothing is left in the repository."""
    source = folder / "source"
    names = ("pyproject.toml", "README.md", "loxodon")
    source.mkdir()
    run(["cp", "-r", *(str(CLIENT / name) for name in names), str(source)], folder)
    build = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"
    run([sys.executable, "-c", build, str(folder)], source)
    return next(folder.glob("*.whl"))


def installed(wheel: Path, folder: Path) -> str:
    """The Python of a new environment that holds the wheel and what it asks for, and nothing else."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    run([python, "-m", "pip", "install", "-qq", str(wheel)], folder)
    return python


def first_session(python: str, folder: Path, service: Service, more: dict[str, str]) -> None:
    """Runs the first block of Python of the README, outside the repository."""
    found = FIRST_SESSION.search((CLIENT / "README.md").read_text(encoding="utf-8"))
    assert found, "the README has no Python"
    (folder / "session.py").write_text(found[1], encoding="utf-8")
    run([python, "session.py"], folder, {"LOXODON_URL": service.url, "LOXODON_API_KEY": service.key} | more)
