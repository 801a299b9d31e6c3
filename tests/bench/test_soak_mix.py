"""The requests of `make soak` are answered as it expects, so that it fails for nothing but what it looks for."""

from __future__ import annotations

from collections import Counter

from fastapi import FastAPI

from bench.clients import TimedResponse
from bench.pacing import PacedAnswer
from bench.soak import WRONG, SoakMix
from tests.conftest import Tenant
from tests.support.application import client_of

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
