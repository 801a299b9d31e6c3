"""Walks through the console in Chromium against a started service: `make test-console`; ARGS go to pytest.

Chromium comes from the system (`apt-get install chromium`, which this does as root), the packages of
requirements/console.txt into build/console. WRITE_SCREENSHOTS=1 writes docs/console again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PINS = ROOT / "requirements" / "console.txt"
BUILD = ROOT / "build" / "console"


def main() -> int:
    if not _has_chromium():
        print("Left out: there is no Chromium. Install it by name, for example: apt-get install chromium")
        return 0
    _install()
    paths = os.pathsep.join([str(BUILD), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-o",
        "python_files=walk_*.py",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.console.walks.fixtures",
        "tests/console/walks",
    ]
    return subprocess.run(
        [*command, *sys.argv[1:]], cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}, check=False
    ).returncode


def _has_chromium() -> bool:
    if not shutil.which("chromium") and shutil.which("apt-get") and os.geteuid() == 0:
        for words in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
            subprocess.run(["timeout", "120", "apt-get", "-qq", *words], check=False, stdout=subprocess.DEVNULL)
    return shutil.which("chromium") is not None


def _install() -> None:
    done, wanted = BUILD / "installed", hashlib.sha256(PINS.read_bytes()).hexdigest()
    if done.exists() and done.read_text() == wanted:
        return
    shutil.rmtree(BUILD, ignore_errors=True)
    asked = ["--require-hashes", "--no-deps", "--target", str(BUILD), "-r", str(PINS)]
    subprocess.run([sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *asked], check=True)
    done.write_text(wanted)


if __name__ == "__main__":
    sys.exit(main())
