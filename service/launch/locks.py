"""Who owns this data folder?

flock, never a pid in a file: the kernel drops it on kill -9, and a pid can be reused by a stranger.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FolderLock:
    """An exclusive flock on `path`. The file stays behind: deleting it would let two owners hold two inodes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def acquire(self) -> bool:
        """True when the lock is ours, also when it was before; never waits."""
        if self._fd is not None:
            return True
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def note(self, text: str) -> None:
        """Write a line the loser of the race can read, e.g. our URL. Only the holder may call it."""
        if self._fd is None:
            raise RuntimeError("the lock is not held")
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text.encode(), 0)

    def read_note(self) -> str:
        """Returns what the holder noted, "" when nothing."""
        try:
            return self.path.read_text(encoding="utf-8").strip()
        except OSError:
            return ""

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
