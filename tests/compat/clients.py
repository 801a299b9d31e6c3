"""The clients by name and version, none patched: where each is installed, and the walk that it takes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "compat"
HERE = ROOT / "tests" / "compat"


@dataclass(frozen=True, slots=True)
class ForeignClient:
    """`pins`: the file that names its packages with their hashes."""

    pins: Path
    walk: str

    def prove(self, url: str, key: str, *, folder: str) -> None:
        """Installs it, and walks; raises SystemExit with the output of what failed."""
        home = BUILD / folder
        walking = _in_node(home, self) if self.walk.endswith(".mjs") else _in_python(home, self)
        print(run(walking, home, {"LOXODON_URL": url, "LOXODON_API_KEY": key}).strip().splitlines()[-1], flush=True)


CLIENTS = {
    "mem0ai-2.2.1": ForeignClient(ROOT / "requirements" / "compat.txt", "mem0_python.py"),
    "mem0ai-1.0.11": ForeignClient(ROOT / "requirements" / "compat-1.txt", "mem0_python.py"),
    "mem0ai-npm-3.3.1": ForeignClient(HERE / "package-lock.json", "mem0_node.mjs"),
}
"""By name and version. The last needs node."""


def run(command: Sequence[str], folder: Path, more: dict[str, str] | None = None) -> str:
    """What it prints; raises SystemExit with that when it fails."""
    quiet = {"MEM0_TELEMETRY": "False"} | (more or {})
    done = subprocess.run(
        command, cwd=folder, env=os.environ | quiet, capture_output=True, text=True, check=False, timeout=1_800
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
    return done.stdout


def _is_installed(home: Path, client: ForeignClient) -> bool:
    wanted = hashlib.sha256(client.pins.read_bytes()).hexdigest()
    done = home / "installed"
    return done.exists() and done.read_text() == wanted


def _note_installed(home: Path, client: ForeignClient) -> None:
    (home / "installed").write_text(hashlib.sha256(client.pins.read_bytes()).hexdigest())


def _in_python(home: Path, client: ForeignClient) -> Sequence[str]:
    python = str(home / "bin" / "python")
    if not _is_installed(home, client):
        venv.create(home, clear=True, with_pip=True)
        asked = ("-qq", "--require-hashes", "--no-compile", "-r", str(client.pins))
        run((python, "-m", "pip", "install", *asked), home)
        _note_installed(home, client)
    return python, str(HERE / "walks" / client.walk)


def _in_node(home: Path, client: ForeignClient) -> Sequence[str]:
    if not _is_installed(home, client):
        home.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, home)
        run(("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"), home)
        _note_installed(home, client)
    shutil.copy(HERE / "walks" / client.walk, home)  # beside what it imports
    return "node", client.walk
