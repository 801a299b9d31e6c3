"""Other tools, such as those of a client: their commands, and the folders of build/ that they are installed in."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(command: Sequence[str], folder: Path, more: Mapping[str, str] | None = None) -> str:
    """What it printed; raises SystemExit with that when it fails. `more`: on top of our environment, which loses
    PYTHONPATH, so that no package is found by accident."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env={**ours, **(more or {})}, capture_output=True, text=True, check=False, timeout=1800
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-8000:]}\n{done.stderr[-6000:]}")
    return done.stdout


def install_python(home: Path, pins: Path) -> str:
    """The Python of an environment that holds what `pins` lists with hashes; made anew when that changed."""
    python = str(home / "bin" / "python")
    if not _holds(home, pins):
        venv.create(home, clear=True, with_pip=True)
        run((python, "-m", "pip", "install", "-qq", "--no-compile", "--require-hashes", "-r", str(pins)), home)
        _stamp(home).write_text(_hash(pins))
    return python


def install_node(home: Path, lock: Path) -> None:
    """Makes the folder hold what the package-lock.json pins."""
    if not _holds(home, lock):
        home.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", lock.name):
            shutil.copy(lock.parent / name, home)
        run(("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"), home)
        _stamp(home).write_text(_hash(lock))


def _holds(home: Path, pins: Path) -> bool:
    return _stamp(home).exists() and _stamp(home).read_text() == _hash(pins)


def _stamp(home: Path) -> Path:
    return home / "installed"


def _hash(pins: Path) -> str:
    return hashlib.sha256(pins.read_bytes()).hexdigest()
