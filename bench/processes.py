"""Which processes does a started service consist of, and how much CPU has each used? Read from /proc, so Linux only."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

Part = Literal["api", "worker", "postgres"]
PARTS: tuple[Part, ...] = ("api", "worker", "postgres")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Family:
    """A supervisor and its children; `cluster` is the folder of its Postgres."""

    supervisor: int
    cluster: Path
    log: Path

    def pid(self, part: Part) -> int | None:
        """The living process of a part, None while it is dead."""
        if part == "postgres":
            return next((pid for pid in children(self.supervisor) if _name(pid) == "postgres"), None)
        return next((pid for pid in children(self.supervisor) if _runs(pid, part)), None)

    def cpu_s(self) -> dict[Part, float]:
        """Seconds of CPU used so far by each part; Postgres with all its backends, living and dead."""
        found: dict[Part, float] = {}
        for part in PARTS:
            pid = self.pid(part)
            family = [] if pid is None else [pid, *(children(pid) if part == "postgres" else ())]
            found[part] = sum(_cpu_s(each, with_dead=each == pid) for each in family)
        return found

    def database_url(self) -> str:
        """The superuser's URL, from what Postgres wrote into its folder (line 4 port, line 5 socket folder)."""
        lines = (self.cluster / "postmaster.pid").read_text().splitlines()
        return f"postgresql://postgres@/loxodon?host={quote(lines[4], safe='')}&port={lines[3]}"


def children(parent: int) -> list[int]:
    """The direct children of a process that live."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat(int(entry))) and int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(entry))
    return found


def _runs(pid: int, command: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[1:4] == [b"-m", b"service", command.encode()]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _cpu_s(pid: int, *, with_dead: bool) -> float:
    fields = _stat(pid)
    counted = fields[11:15] if with_dead else fields[11:13]  # utime, stime, and those of children that were waited for
    return sum(map(int, counted)) / TICKS_PER_S


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the state on; empty when it is gone. The name before may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
