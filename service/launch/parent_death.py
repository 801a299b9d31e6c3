"""Children that die with their parent, even when the parent is killed with -9.

Linux: PR_SET_PDEATHSIG, set by this file between fork and exec: `parent_death.py SIGNAL PARENT UID GID command …` (UID
-1 keeps the user). A wrapper rather than preexec_fn, which runs Python in a forked child of a threaded process: Python
3.12 warns about that and it can deadlock. Costs about 20 ms. On other systems the next start finds the children and
ends them. The signal is tied to the *thread* that forked, so children are started from the main thread.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctypes import CDLL

PR_SET_PDEATHSIG = 1


def end_with_parent(command: Sequence[str], on_death: signal.Signals, *, uid: int = -1, gid: int = -1) -> list[str]:
    """`command`, wrapped so that it gets `on_death` when this process dies, running as `uid`:`gid` if given."""
    return [sys.executable, "-I", "-S", __file__, str(int(on_death)), str(os.getpid()), str(uid), str(gid), *command]


def arm(on_death: int, parent: int) -> bool:
    """Makes this process get `on_death` when `parent` dies. False when it has died already."""
    return _armed(_libc(), on_death, parent)


def _libc() -> CDLL | None:
    if sys.platform != "linux":
        return None
    import ctypes  # here: it costs 8 ms, and most importers do not need it

    return ctypes.CDLL(None)


def _armed(libc: CDLL | None, on_death: int, parent: int) -> bool:
    if libc is not None:
        libc.prctl(PR_SET_PDEATHSIG, on_death, 0, 0, 0)
    return os.getppid() == parent


def main(arguments: Sequence[str]) -> None:
    on_death, parent, uid, gid = (int(word) for word in arguments[:4])
    command = list(arguments[4:])
    libc = _libc()  # before setuid: the account `nobody` may lack permission
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if not _armed(libc, on_death, parent):  # after setuid, which clears it
        sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 (no shell wanted)
    except OSError as exc:
        sys.exit(f"{command[0]}: {exc.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
