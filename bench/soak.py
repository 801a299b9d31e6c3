"""Watches the memory of all processes under a steady mixed load, for as long as one has patience.

    python -m bench.soak [--minutes 15] [--share 0.8]

A closed loop of a few clients finds what the service can do with the mix; then an open loop offers a share of that:
stores, batches, searches, recalls, lists, updates, deletions, conversations, the change feed, tools of agents over MCP,
and requests that are wrong. Every 15 s the memory of each kind of process is read (PSS). The first fifth of the time is
warm-up. Flat means: of what is left, the median of the last quarter is at most 4 % above that of the third, and at most
12 % above that of the first.

API, supervisor, worker and its model are judged by all of their memory. Of Postgres the largest
connection is judged: what the connections have together goes up and down with how many are open, and `shared_buffers`
(128 MB) fills while the database grows, as it should; both are only shown, in parentheses. A growth of less than 3 MB
is none: a process or a cache comes and goes.

The exit code is 1 when memory is not flat, or when anything but a wrong request gets another error than 429 or 503, of
which there are some when the machine has more to do than at the beginning. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import statistics
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench import sentences, target
from bench.footprint import memory_by_process
from bench.numbers import percentile, table
from bench.pacing import ACCEPTED, REFUSED, PacedAnswer, PacedLoad, PlannedRequest, accepted_ms
from bench.target import Service

CLIENTS, USERS = 8, 40
WARM_S, CAPACITY_S = 10.0, 30.0
SAMPLE_S = 15.0
WARM_UP = 0.2
MOST_GROWTH = {"since the third quarter": 0.04, "since the first": 0.12}
LEAST_MB = 3.0
"""A smaller growth is none: a process more or less, a cache that fills."""

MCP_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
WRONG = {
    "wrong: no content": ("POST", "/v1/memories", b'{"user_id": "x"}', 400),
    "wrong: no JSON": ("POST", "/v1/memories", b'{"content": ', 400),
    "wrong: unknown id": ("GET", "/v1/memories/00000000-0000-7000-8000-000000000000", b"", 404),
    "wrong: no such route": ("GET", "/v1/nothing", b"", 404),
}

MAY_BE = {"update": (404, 409), "delete": (404,)}
"""By kind: the memory may have been deleted or merged before its turn came, or its new text be that of another one."""


class SoakMix:
    """Plans the next request of a mix, and remembers ids and cursors from the answers."""

    def __init__(self, key: str, seed: int) -> None:
        self._key = key
        self._chance = random.Random(seed)
        self._texts = sentences.distinct(40_000, seed=seed)
        self._sent = 0
        self._memories: deque[str] = deque(maxlen=2_000)
        self._talkers: dict[str, None] = {}
        self._cursor = ""
        self.statuses: Counter[tuple[str, int]] = Counter()
        self._kinds: Mapping[Callable[[], PlannedRequest], int] = {
            self._store: 30,
            self._batch: 3,
            self._search: 25,
            self._recall: 8,
            self._list: 5,
            self._update: 8,
            self._delete: 6,
            self._conversation: 3,
            self._turn: 3,
            self._context: 2,
            self._changes: 3,
            self._tool: 4,
            self._wrong: 4,
        }

    def plan(self) -> PlannedRequest:
        return self._chance.choices([*self._kinds], weights=[*self._kinds.values()])[0]()

    def heard(self, answer: PacedAnswer) -> None:
        kind = answer.request.kind
        self.statuses[kind, answer.status] += 1
        if answer.status not in ACCEPTED or answer.answer is None:
            return
        if kind == "store":
            self._memories += [each["id"] for each in answer.answer.json["results"]]
        elif kind == "turn":
            self._talkers[json.loads(answer.request.body)["user_id"]] = None
        elif kind == "changes":
            self._cursor = answer.answer.json["next_cursor"]

    def violations(self) -> list[str]:
        """Answers that nobody should get."""
        wrong = []
        for (kind, status), count in self.statuses.items():
            expected = [WRONG[kind][3]] if kind in WRONG else [*ACCEPTED]
            if status not in (*expected, *MAY_BE.get(kind, ()), *REFUSED):
                wrong.append(f"{kind}: {count} times {status}")
        return wrong

    def _text(self) -> str:
        self._sent += 1
        return self._texts[self._sent % len(self._texts)]

    def _user(self) -> str:
        return f"user-{self._chance.randrange(USERS)}"

    def _request(self, kind: str, method: str, path: str, body: Any = None, **headers: str) -> PlannedRequest:
        sent = b"" if body is None else json.dumps(body).encode()
        return PlannedRequest(self._key, method, path, sent, headers, kind)

    def _store(self) -> PlannedRequest:
        return self._request("store", "POST", "/v1/memories", {"content": self._text(), "user_id": self._user()})

    def _batch(self) -> PlannedRequest:
        user = self._user()
        items = [{"content": self._text(), "user_id": user} for _ in range(5)]
        return self._request("batch", "POST", "/v1/memories/batch", {"items": items})

    def _search(self) -> PlannedRequest:
        body = {"query": self._text(), "user_id": self._user(), "limit": 10}
        return self._request("search", "POST", "/v1/memories/search", body)

    def _recall(self) -> PlannedRequest:
        return self._request("recall", "POST", "/v1/recall", {"query": self._text(), "user_id": self._user()})

    def _list(self) -> PlannedRequest:
        return self._request("list", "GET", f"/v1/memories?user_id={self._user()}&limit=20")

    def _update(self) -> PlannedRequest:
        if not self._memories:
            return self._store()
        body = {"content": self._text()} if self._chance.random() < 0.5 else {"metadata": {"seen": self._sent}}
        return self._request("update", "PATCH", f"/v1/memories/{self._chance.choice(self._memories)}", body)

    def _delete(self) -> PlannedRequest:
        if not self._memories:
            return self._store()
        return self._request("delete", "DELETE", f"/v1/memories/{self._memories.popleft()}")

    def _conversation(self) -> PlannedRequest:
        said = [{"role": "user", "content": self._text()}, {"role": "assistant", "content": "I will remember that."}]
        body = {"messages": said, "user_id": self._user(), "session_id": f"chat-{self._chance.randrange(50)}"}
        return self._request("conversation", "POST", "/v1/memories", body)

    def _turn(self) -> PlannedRequest:
        user = self._user()
        body = {"messages": [{"role": "user", "content": self._text()}], "infer": False, "user_id": user}
        return self._request("turn", "POST", "/v1/memories", body | {"run_id": f"of-{user}"})

    def _context(self) -> PlannedRequest:
        if not self._talkers:
            return self._turn()
        user = self._chance.choice([*self._talkers])
        path = f"/v1/conversations/of-{user}/context?user_id={user}&max_tokens=1000"
        return self._request("context", "GET", path)

    def _changes(self) -> PlannedRequest:
        after = self._cursor or "now"
        return self._request("changes", "GET", f"/v1/changes?limit=100&after={after}")

    def _tool(self) -> PlannedRequest:
        name, field = self._chance.choice((("remember", "content"), ("recall", "query")))
        call = {"name": name, "arguments": {field: self._text(), "user_id": self._user()}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        return self._request("tool", "POST", "/mcp", body, **MCP_HEADERS)

    def _wrong(self) -> PlannedRequest:
        kind = self._chance.choice([*WRONG])
        method, path, body, _ = WRONG[kind]
        return PlannedRequest(self._key, method, path, body, kind=kind)


Sample = Mapping[str, float]
SHOWN_ONLY = "("


async def sample_until(supervisor: int, ends: float, say: Callable[[str], None]) -> list[Sample]:
    """Megabytes by kind of process, every 15 s until `ends` on the monotonic clock."""
    samples: list[Sample] = []
    began = time.monotonic()
    while time.monotonic() < ends:
        samples.append(await asyncio.to_thread(memory_by_process, supervisor))
        shown = "  ".join(f"{name} {mb:.0f}" for name, mb in samples[-1].items())
        say(f"{(time.monotonic() - began) / 60:5.1f} min  {shown}")
        await asyncio.sleep(SAMPLE_S)
    return samples


def quarters(samples: Sequence[Sample]) -> dict[str, tuple[float, ...]]:
    """The median megabytes of each quarter after the warm-up, by kind of process."""
    warm = samples[int(len(samples) * WARM_UP) :]
    cuts = [len(warm) * number // 4 for number in range(5)]
    found: dict[str, tuple[float, ...]] = {}
    for name in sorted({name for each in warm for name in each}):
        values = [each.get(name, 0.0) for each in warm]
        found[name] = tuple(statistics.median(values[a:b]) for a, b in itertools.pairwise(cuts))
    return found


def growths(found: Mapping[str, Sequence[float]]) -> list[str]:
    """What is not flat."""
    wrong = []
    for name, (first, _, third, last) in found.items():
        for since, before in zip(MOST_GROWTH, (third, first), strict=True):
            grown = last - before
            if SHOWN_ONLY not in name and grown > max(LEAST_MB, MOST_GROWTH[since] * before):
                wrong.append(f"{name}: {grown:.1f} MB more {since} ({grown / before:.1%})")
    return wrong


async def soak(service: Service, *, minutes: float, share: float, say: Callable[[str], None]) -> list[str]:
    """Prints what is seen; returns what is wrong."""
    assert service.processes is not None
    mix = SoakMix(service.key, seed=7)
    load = PacedLoad(service.url, mix.plan, mix.heard)
    await load.closed(clients=CLIENTS, seconds=WARM_S)
    began = time.monotonic()
    per_s = len(await load.closed(clients=CLIENTS, seconds=CAPACITY_S)) / (time.monotonic() - began)
    say(f"the service does {per_s:.0f} requests of the mix a second; offered are {share * per_s:.0f}")
    mix.statuses.clear()
    ends = time.monotonic() + minutes * 60
    watching = asyncio.create_task(sample_until(service.processes.supervisor, ends, say))
    latencies: dict[str, list[float]] = defaultdict(list)
    while (left_s := ends - time.monotonic()) > 1:
        answers = await load.open(per_s=share * per_s, seconds=min(60.0, left_s))
        for each in answers:
            latencies[each.request.kind] += accepted_ms([each])
    await load.close()
    found = quarters(await watching)
    say(table(["MB, median of a quarter", "1st", "2nd", "3rd", "4th"], [(name, *each) for name, each in found.items()]))
    rows = [(kind, len(ms), percentile(ms, 0.5), percentile(ms, 0.99)) for kind, ms in sorted(latencies.items()) if ms]
    say(table(["accepted", "requests", "p50 ms", "p99 ms"], rows))
    counts = Counter(status for (_, status), count in mix.statuses.items() for _ in range(count))
    say(f"statuses {dict(counts)}")
    return growths(found) + mix.violations()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--share", type=float, default=0.8, help="of what the service can do")
    options = parser.parse_args(words)
    with target.started() as service:
        wrong = asyncio.run(
            soak(service, minutes=options.minutes, share=options.share, say=lambda line: print(line, flush=True))
        )
    print("\n".join(wrong) if wrong else "memory is flat")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
