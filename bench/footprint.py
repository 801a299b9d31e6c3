"""Measures the memory of all processes at rest: after some stores, searches and adds, and a pause.

    python -m bench.footprint [--pause 60] [--most 450]

Memory is PSS: a page that several processes share counts once in the sum. Other programs on the machine that use the
same libraries take their share of them, so on a busy machine the sum is some 10 to 20 MB too low. With --most the exit
code is 1 above so many megabytes. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench import sentences, target
from bench.clients import post_all
from bench.numbers import table
from bench.target import Service, children

USERS, STORES, SEARCHES, ADDS = 5, 200, 200, 20
LARGEST = "postgres, a connection"


def family(pid: int) -> list[int]:
    """Returns a process and all that descend from it."""
    return [pid, *(each for child in children(pid) for each in family(child))]


def pss_mb(pids: Iterable[int]) -> float:
    """Returns the megabytes of processes; those that ended meanwhile count nothing."""
    return sum(_kb(pid, "Pss:") for pid in pids) / 1024


def by_process(supervisor: int) -> dict[str, float]:
    """Returns megabytes by kind of process, and how many there are of a kind."""
    groups: dict[str, list[int]] = defaultdict(list)
    for pid in family(supervisor):
        groups[_kind(pid)].append(pid)
    return {f"{kind}, {len(pids)}" if len(pids) > 1 else kind: pss_mb(pids) for kind, pids in sorted(groups.items())}


def memory_by_process(supervisor: int) -> dict[str, float]:
    """Megabytes by program. Of Postgres what its processes have for themselves, together and the largest connection,
    and what they share."""
    found: dict[str, float] = defaultdict(float)
    for pid in family(supervisor):
        kind = _kind(pid)
        if not kind.startswith("postgres"):
            found[kind] += _kb(pid, "Pss:") / 1024
            continue
        own = _kb(pid, "Pss_Anon:") / 1024
        found["postgres (own)"] += own
        found["postgres (shared)"] += _kb(pid, "Pss_Shmem:") / 1024
        if kind != "postgres: its own":
            found[LARGEST] = max(found[LARGEST], own)
    return {name: found[name] for name in sorted(found)}


def _kb(pid: int, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(field)), 0)


def _kind(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").split()
    except OSError:
        return "ended"
    if "service" in words:
        return words[words.index("service") + 1]
    if words[:1] == ["postgres:"]:
        return f"postgres: {words[1]}" if words[1].startswith("loxodon") else "postgres: its own"
    return "postgres: its own" if words and words[0].endswith("postgres") else "the worker's model"


async def _use(service: Service) -> None:
    texts = iter(sentences.distinct(STORES + SEARCHES + ADDS, seed=4))

    async def post(path: str, count: int, clients: int, field: str) -> None:
        bodies = []
        for at in range(count):
            text = next(texts)
            said = [{"role": "user", "content": f"I moved to Lisbon last month. {text}"}]
            value = said if field == "messages" else text
            bodies.append(json.dumps({field: value, "user_id": f"{field[0]}-{at % USERS}"}).encode())
        run = await post_all(service.url, service.key, path, bodies, clients=clients)
        if wrong := [each for each in run.answers if each.status not in (200, 201)]:
            raise SystemExit(f"{path} answered {wrong[0].status}: {wrong[0].body[:500]!r}")

    await post("/v1/memories", STORES, 8, "content")
    await post("/v1/memories/search", SEARCHES, 8, "query")
    await post("/v1/memories", ADDS, 4, "messages")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pause", type=float, default=60.0, help="seconds of rest before it is measured")
    parser.add_argument("--most", type=float, help="megabytes above which the exit code is 1")
    options = parser.parse_args(words)
    with target.started() as service:
        assert service.processes is not None
        asyncio.run(_use(service))
        time.sleep(options.pause)
        found = by_process(service.processes.supervisor)
    total = sum(found.values())
    print(table(["process", "MB"], [*found.items(), ("all", total)]))
    return int(options.most is not None and total > options.most)


if __name__ == "__main__":
    raise SystemExit(main())
