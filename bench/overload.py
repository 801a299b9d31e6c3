"""Measures what happens when three times as many requests come as the service can answer.

    python -m bench.overload [--seconds 30] [--times 3] [--workspaces 1]

First a closed loop of a few clients, half stores and half searches, finds what the service can do and how long it takes
(normal). Then an open loop offers a multiple of that: requests come whether or not others were answered. At the end the
few clients go on, and each second of theirs is looked at. The exit code is 1 unless

- the p99 of accepted requests is at most 3 times the normal one,
- everything else is answered with 429 or 503 and Retry-After, 99 of 100 within the normal p99 (at least 250 ms),
- within 5 s of the end the p99 of a second is at most 1.5 times the normal one, and nothing is refused any more.

Latencies count from when a request was due. The generator is light (bench/pacing.py), and still takes a few per cent of
the two cores it shares with the service. The machine should have nothing else to do.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import sentences, target
from bench.clients import Client
from bench.numbers import percentile, table
from bench.pacing import ACCEPTED, REFUSED, PacedAnswer, PacedLoad, PlannedRequest, accepted_ms, p99
from bench.target import Service

CLIENTS = 8
USERS = 20
WARM_S, NORMAL_S, AFTER_S = 6.0, 20.0, 8.0
MOST_TIMES_P99 = 3.0
REFUSED_WITHIN_MS = 250.0
RECOVERED_TIMES_P99 = 1.5
RECOVERED_WITHIN_S = 5


@dataclass(frozen=True, slots=True)
class OverloadRun:
    """What was measured. `after`: by whole seconds since the end of the overload."""

    normal: Sequence[PacedAnswer]
    per_s: float
    offered_per_s: float
    during: Sequence[PacedAnswer]
    after: Sequence[Sequence[PacedAnswer]]
    generator_cpu: float

    @property
    def refused(self) -> list[PacedAnswer]:
        return [each for each in self.during if each.status in REFUSED]

    @property
    def accepted_per_s(self) -> float:
        first, last = self.during[0].due_s, max(each.ends_s for each in self.during)
        return len(accepted_ms(self.during)) / (last - first)

    @property
    def recovered_s(self) -> int | None:
        """Seconds after which all is normal again; None: not in the time that was looked at."""
        most = RECOVERED_TIMES_P99 * p99(self.normal)
        bad = [
            number
            for number, second in enumerate(self.after, 1)
            if any(each.status not in ACCEPTED for each in second) or not p99(second) <= most
        ]
        return 0 if not bad else bad[-1] if bad[-1] < len(self.after) else None

    def violations(self) -> list[str]:
        wrong = []
        times = p99(self.during) / p99(self.normal)
        if not times <= MOST_TIMES_P99:
            wrong.append(f"the p99 of accepted requests is {times:.2f} times the normal one")
        others = Counter(each.status for each in self.during if each.status not in (*ACCEPTED, *REFUSED))
        if others:
            wrong.append(f"answered otherwise than with 2xx, 429 and 503: {dict(others)}")
        if bare := sum(each.answer is not None and each.answer.retry_after is None for each in self.refused):
            wrong.append(f"{bare} refusals say no Retry-After")
        quickly = max(REFUSED_WITHIN_MS, p99(self.normal))
        if (slow := percentile([each.ms for each in self.refused], 0.99)) > quickly:
            wrong.append(f"refusals take {slow:.0f} ms (p99), {quickly:.0f} ms are allowed")
        if self.recovered_s is None or self.recovered_s > RECOVERED_WITHIN_S:
            wrong.append(f"not normal again within {RECOVERED_WITHIN_S} s")
        return wrong

    def __str__(self) -> str:
        refused_ms = [each.ms for each in self.refused]
        rows = [
            ("normal", self.per_s, *_percentiles(accepted_ms(self.normal))),
            ("overload: accepted", self.accepted_per_s, *_percentiles(accepted_ms(self.during))),
            ("overload: refused", len(refused_ms) * self.offered_per_s / len(self.during), *_percentiles(refused_ms)),
        ]
        seconds = [
            (f"{n}. second after", float(len(each)), *_percentiles(accepted_ms(each)))
            for n, each in enumerate(self.after, 1)
        ]
        statuses = dict(Counter(each.status for each in self.during).most_common())
        return "\n".join(
            [
                table(["", "per s", "p50 ms", "p99 ms", "longest ms"], [*rows, *seconds]),
                f"offered {self.offered_per_s:.0f} per s, statuses {statuses}, "
                f"generator {self.generator_cpu:.0%} of a core",
                f"p99 of accepted {p99(self.during) / p99(self.normal):.2f} times the normal one; "
                f"normal again after {self.recovered_s} s",
            ]
        )


def _percentiles(values: Sequence[float]) -> tuple[float, float, float]:
    return percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1.0)


def stores_and_searches(keys: Sequence[str], seed: int) -> Callable[[], PlannedRequest]:
    """Stores of new sentences and searches with new questions in turns, of some users of each key."""
    chance, texts = random.Random(seed), sentences.distinct(20_000, seed=seed)
    numbers = itertools.count()

    def plan() -> PlannedRequest:
        number = next(numbers)
        user, text = f"user-{chance.randrange(USERS)}", texts[number % len(texts)]
        path, field = ("/v1/memories", "content") if number % 2 else ("/v1/memories/search", "query")
        body = json.dumps({field: text, "user_id": user}).encode()
        return PlannedRequest(keys[chance.randrange(len(keys))], "POST", path, body)

    return plan


async def keys_of(service: Service, workspaces: int) -> list[str]:
    """The service's key, and those of workspaces made beside its own."""
    operator = Client(service.url, service.key)
    made = [
        (await operator.post("/v1/workspaces", json.dumps({"name": f"bench-{number}"}).encode())).json["api_key"]
        for number in range(1, workspaces)
    ]
    await operator.close()
    return [service.key, *made]


async def measure(
    service: Service, *, seconds: float, times: float = 3.0, workspaces: int = 1, normal_s: float = NORMAL_S
) -> OverloadRun:
    load = PacedLoad(service.url, stores_and_searches(await keys_of(service, workspaces), seed=5))
    await load.closed(clients=CLIENTS, seconds=WARM_S)
    began = time.monotonic()
    normal = await load.closed(clients=CLIENTS, seconds=normal_s)
    per_s = len(normal) / (time.monotonic() - began)
    cpu, began = time.process_time(), time.monotonic()
    going_on = asyncio.create_task(load.open(per_s=times * per_s, seconds=seconds))
    await asyncio.sleep(seconds)
    generator_cpu, ended = (time.process_time() - cpu) / (time.monotonic() - began), time.monotonic()
    after = await load.closed(clients=CLIENTS, seconds=AFTER_S)
    during = await going_on
    await load.close()
    by_second = [
        [each for each in after if second <= each.ends_s - ended < second + 1] for second in range(int(AFTER_S))
    ]
    return OverloadRun(normal, per_s, times * per_s, during, by_second, generator_cpu)


def main(words: Sequence[str] | None = None) -> int:
    parser = target.arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of overload")
    parser.add_argument("--times", type=float, default=3.0, help="what the service can do")
    parser.add_argument("--workspaces", type=int, default=1, help="among which the load is spread")
    options = parser.parse_args(words)
    with target.chosen(options) as service:
        found = asyncio.run(
            measure(service, seconds=options.seconds, times=options.times, workspaces=options.workspaces)
        )
    print(found)
    wrong = found.violations()
    print("\n".join(wrong) if wrong else "all limits hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
