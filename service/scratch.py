"""A temporary folder for this process, which the next start removes where this process is killed.

multiprocessing keeps the socket of its server in a temporary folder, and a killed process would leave that for good.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from multiprocessing import process
from pathlib import Path

PREFIX = "loxodon-scratch-"


def use() -> None:
    """Makes the folder, unless this process has one, and removes those whose processes are gone. A lock on the folder
    says that its process lives: the kernel drops it with the process."""
    config: dict[str, object] = process.current_process()._config  # type: ignore[attr-defined]
    if config.get("tempdir") is not None:
        return
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if (fd := _lock(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(fd)
    made = Path(tempfile.mkdtemp(prefix=PREFIX))
    while _lock(made) is None or not made.exists():  # another start took it for one that was left
        made.mkdir(mode=0o700, exist_ok=True)
    config["tempdir"] = str(made)
    atexit.register(shutil.rmtree, made, ignore_errors=True)


def _lock(folder: Path) -> int | None:
    """The descriptor that holds the lock; None where another process holds it, or the folder is not ours or gone."""
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except OSError:
            os.close(fd)
    return None
