"""Does a Loxodon run on this data folder already, and where?

The lock decides; the note in it only tells the second one what the first one is doing. A note without a lock was left
by a supervisor that was killed.
"""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

from service.launch.locks import FolderLock
from service.launch.problems import AlreadyRunning

FILE = "run.lock"
STOPPING_S = 60.0  # as long as a drain may take
SURE_S = 1.0  # a supervisor whose make was killed needs a moment to note that it stops
RETRY_S = 0.1


class Ownership:
    """The right to run on `data_dir`, held until `release`."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._lock = FolderLock(data_dir / FILE)

    def take(self) -> bool:
        """Returns True when the last owner was killed, False when it left in order. Waits for one that is stopping.

        Raises AlreadyRunning with the URL of the living one.
        """
        started = time.monotonic()
        while not self._lock.acquire():
            other = self._other()
            patience_s = STOPPING_S if other.get("state") == "stopping" else SURE_S
            if time.monotonic() - started > patience_s:
                where = f" at {other['url']}" if "url" in other else ""
                raise AlreadyRunning(
                    f"Loxodon runs already{where} on the data folder {self._data_dir}.\n"
                    "Use that one, stop it, or give this one its own folder and port: LOXODON_DATA_DIR, LOXODON_PORT."
                )
            time.sleep(RETRY_S)
        return bool(self._other())

    def note(self, state: str, url: str) -> None:
        self._lock.note(json.dumps({"state": state, "url": url}))

    def release(self) -> None:
        """Leave in order: the next one finds no note."""
        with contextlib.suppress(OSError, RuntimeError):
            self._lock.note("")
        self._lock.release()

    def _other(self) -> dict[str, str]:
        try:
            found = json.loads(self._lock.read_note() or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
