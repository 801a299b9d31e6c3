"""What `make soak` calls flat, and that its requests are answered as it expects."""

from __future__ import annotations

from collections import Counter

from fastapi import FastAPI

from bench.clients import TimedResponse
from bench.pacing import PacedAnswer
from bench.soak import WRONG, SoakMix, growths, quarters
from tests.conftest import Tenant
from tests.support.application import client_of


def judged(megabytes: list[float], name: str = "api") -> list[str]:
    return growths(quarters([{name: each, "worker": 85.0} for each in megabytes]))


def test_flat_memory() -> None:
    assert judged([100.0, 150.0, *[250.0] * 30]) == [], "the warm-up does not count"
    assert judged([250.0, 252.0] * 20) == [], "a process more or less is no growth"
    assert judged([10.0 + number / 20 for number in range(40)]) == [], "nor is a megabyte"
    assert judged([30.0 + number for number in range(60)], "postgres (shared)") == [], "Postgres fills its buffers"


def test_memory_that_grows() -> None:
    found = judged([200.0 + 2 * number for number in range(60)])
    assert [each.split(":")[0] for each in found] == ["api", "api"], "since the third quarter, and since the first"
    (slowly,) = judged([200.0 + number * 0.75 for number in range(60)])
    assert "since the first" in slowly


# -- the requests ------------------------------------------------------------------------------------------------------

REQUESTS = 60


async def test_the_mix_is_answered(app: FastAPI, tenant: Tenant) -> None:
    mix = SoakMix(tenant.key, seed=7)
    async with client_of(app, tenant.key) as client:
        for _ in range(REQUESTS):
            asked = mix.plan()
            headers = {"Content-Type": "application/json", **asked.headers}
            got = await client.request(asked.method, asked.path, content=asked.body, headers=headers)
            answer = TimedResponse(got.status_code, got.content, 1.0)
            mix.heard(PacedAnswer(asked, 0.0, got.status_code, 1.0, answer))
    assert mix.violations() == []
    kinds = Counter(kind for kind, _ in mix.statuses)
    assert len(kinds) >= 10, kinds
    assert kinds.keys() & WRONG.keys()
