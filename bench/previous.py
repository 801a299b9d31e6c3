"""Runs the tests of an earlier release on a schema made by the migrations of today: `make previous FROM=v0.1.0`.

While a new version is rolled out the one before it works on the new schema. Its own tests say best whether it can.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TODAYS = (
    "migrations",
    "service/kit/shipped.py",
    "service/postgres/schema.py",
    "service/postgres/sql",
    "service/postgres/migrate.py",
    "service/postgres/vitals.py",
)
"""What makes the schema; the rest is of the release."""

TESTS = ("tests/intake/test_store.py", "tests/search/routes/test_search_rows.py", "tests/conversations", "tests/worker")
LEFT_OUT = ("tests/postgres", "tests/app/test_readiness.py")
"""They compare the schema with that of their own release, which is what differs here."""


def main(release: str, tests: list[str]) -> int:
    """pytest's exit code."""
    with tempfile.TemporaryDirectory(prefix="loxodon-previous-") as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--detach", str(tree), release)
        try:
            for file in (
                *(ROOT / name for name in TODAYS),
                *ROOT.glob("service/*/tables.sql"),
                *ROOT.glob("service/*/functions"),
            ):
                _take(file, tree / file.relative_to(ROOT))
            left_out = [f"--ignore={name}" for name in LEFT_OUT]
            command = [sys.executable, "-m", "pytest", "-q", *left_out, *(tests or TESTS)]
            return subprocess.run(command, cwd=tree, check=False).returncode
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _take(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release", help="A tag or commit.")
    parser.add_argument("tests", nargs="*", help="Files of tests of that release.")
    given = parser.parse_args()
    raise SystemExit(main(given.release, given.tests))
