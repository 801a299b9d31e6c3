"""Makes the secrets of `make up`: adds to the file named those that it lacks, and leaves the others.

The Makefile runs it as a plain file with any Python, so it uses the standard library only.
"""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

PASSWORDS = ("POSTGRES_PASSWORD", "LOXODON_API_PASSWORD", "LOXODON_JOBS_PASSWORD", "LOXODON_MIGRATE_PASSWORD")
FIRST_KEY = "LOXODON_BOOTSTRAP_API_KEY"


def main(path: Path) -> None:
    """Writes the file, readable by its owner only."""
    kept = path.read_text() if path.exists() else ""
    known = {line.partition("=")[0] for line in kept.splitlines()}
    made = {name: secrets.token_urlsafe(24) for name in PASSWORDS} | {FIRST_KEY: "lox_" + secrets.token_urlsafe(32)}
    missing = "".join(f"{name}={value}\n" for name, value in made.items() if name not in known)
    if missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(path.name + ".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
            handle.write(kept + missing)
        fresh.rename(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
