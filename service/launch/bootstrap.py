"""Which key does the first user get?

The database knows hashes only, so the first key is kept beside it, mode 600: the curl line works at every start.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from service.launch.problems import LaunchError

FILE = "first-key"
PREFIX = "lox_"


def first_key(data_dir: Path, given: str | None) -> str:
    """Returns the key that is to exist with admin rights: the given one, the kept one, or a new one that is kept."""
    if given:
        return given
    path = data_dir / FILE
    return _kept(path) or _new(path)


def _kept(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as exc:
        raise LaunchError(f"Cannot read the first key in {path}. Set LOXODON_BOOTSTRAP_API_KEY.") from exc


def _new(path: Path) -> str:
    """Written beside and renamed: a crash leaves a whole key or none."""
    key = PREFIX + secrets.token_urlsafe(32)
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as handle:
        handle.write(key + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    beside.rename(path)
    return key
