"""The data folder: making it, locking it, the note of who runs on it, and the first API key kept in it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from service.launch.problems import LaunchError
from service.launch.programs import Account

RUN_LOCK = "run.lock"
STOPPING_S = 60.0  # as long as a drain may take
KILLED_S = 1.0  # `make run` was killed: its supervisor needs a moment to write down that it stops
RETRY_S = 0.1
KEY_FILE = "first-key"
KEY_PREFIX = "lox_"


def prepare(data_dir: Path) -> None:
    """Make the folder when it is missing. Raises LaunchError naming LOXODON_DATA_DIR when that cannot be.

    Root's folder lets others pass through without listing it: Postgres may have to run as nobody inside (programs.py).
    """
    mode = 0o711 if os.geteuid() == 0 else 0o700
    try:
        data_dir.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as exc:
        raise LaunchError(
            f"Cannot make the data folder {data_dir}: {exc.strerror}. Set LOXODON_DATA_DIR to a folder of yours."
        ) from exc
    if not os.access(data_dir, os.R_OK | os.W_OK | os.X_OK):
        raise LaunchError(f"{data_dir} is not writable. Set LOXODON_DATA_DIR to a folder of yours.")


@contextlib.contextmanager
def removed_on_failure(*folders: Path) -> Iterator[None]:
    """Removes the files that the block has made when it fails, or is interrupted."""
    try:
        yield
    except BaseException:
        for path in folders:
            shutil.rmtree(path, ignore_errors=True)
        raise


class FolderLock:
    """An exclusive flock on `path`, rather than a pid in a file: the kernel drops it on kill -9, and pids are reused.

    The file is never deleted: that would let two owners hold two inodes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def acquire(self) -> bool:
        """True when this object holds the lock now, also when it did before; never waits."""
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

    def note(self, **what: str) -> None:
        """Leaves a note for the process that did not get the lock, e.g. the URL. Only the holder may call it."""
        if self._fd is None:
            raise RuntimeError("the lock is not held")
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, json.dumps(what).encode(), 0)

    def read_note(self) -> dict[str, str]:
        """The holder's note, empty when there is none."""
        try:
            note = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class Ownership:
    """The right to run on `data_dir`, held until `release`.

    The lock decides; its note tells a second process what the first one is doing. A note without a lock was left by a
    supervisor that was killed.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._lock = FolderLock(data_dir / RUN_LOCK)

    def take(self) -> bool:
        """True when the last owner was killed, False when it stopped normally. Waits for one that is stopping.

        Raises LaunchError with the URL of the running one.
        """
        started = time.monotonic()
        while not self._lock.acquire():
            other = self._lock.read_note()
            # no note: it has just taken the lock, or is about to release it
            patience_s = STOPPING_S if other.get("state") in (None, "stopping") else KILLED_S
            if time.monotonic() - started > patience_s:
                where = f" at {other['url']}" if "url" in other else ""
                raise LaunchError(
                    f"Loxodon is already running{where} on the data folder {self._data_dir}.\n"
                    "Use that one, stop it, or give this one its own folder and port: LOXODON_DATA_DIR, LOXODON_PORT."
                )
            time.sleep(RETRY_S)
        return bool(self._lock.read_note())

    def note(self, state: str, url: str) -> None:
        self._lock.note(state=state, url=url)

    def release(self) -> None:
        """Releases after a normal stop: the next owner finds no note."""
        with contextlib.suppress(OSError, RuntimeError):
            self._lock.note()
        self._lock.release()


def first_key(data_dir: Path, given: str | None, database_url: str | None) -> str:
    """The key that gets admin rights: the given one, the stored one, or a new one, which is stored. `database_url`: of
    a Postgres of one's own, which has another key than the embedded one.

    The database holds hashes only, so the first key is kept in a file of mode 600: the printed curl command works at
    every start.
    """
    if given:
        return given
    path = data_dir / _key_file(database_url)
    return _read_key(path) or _new_key(path)


def read_first_key(data_dir: Path, database_url: str | None) -> str | None:
    """The stored one, None where there is none; raises LaunchError for one that cannot be read."""
    return _read_key(data_dir / _key_file(database_url)) or None


def _key_file(database_url: str | None) -> str:
    if database_url is None:
        return KEY_FILE
    url = urlsplit(database_url)
    where = f"{url.netloc.rpartition('@')[2]}{url.path} {parse_qs(url.query).get('host', '')}"
    return f"{KEY_FILE}-{hashlib.sha256(where.encode()).hexdigest()[:12]}"


def _read_key(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as exc:
        raise LaunchError(f"Cannot read the first key in {path}. Set LOXODON_BOOTSTRAP_API_KEY.") from exc


def _new_key(path: Path) -> str:
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    write_private(path, key + "\n")
    return key


def write_private(path: Path, content: str, account: Account | None = None) -> None:
    """Writes a file of mode 600 under another name and renames it: a crash leaves the whole old one or the whole new
    one. `account`: its owner, if not this user."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if account is not None:
        account.give(fresh)
    fresh.rename(path)
