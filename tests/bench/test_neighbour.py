"""A short form of `make neighbour`, over the real service: what one workspace notices of another's hostile requests."""

from __future__ import annotations

from bench import neighbour, target
from tests.thorough import many


async def test_a_quiet_workspace_beside_a_hostile_one() -> None:
    with target.started() as service:
        runs = [await neighbour.measure(service, rounds=many(2, 5), seconds=1.5, clients=16)]
        if runs[0].ratio > neighbour.WORST_RATIO:  # two short rounds say little of time beside other tests
            runs.append(await neighbour.measure(service, rounds=5, seconds=1.5, clients=16))
    for found in runs:
        assert not found.failed, found
        assert found.rss_bytes < neighbour.MOST_RSS_BYTES, found
        assert not set(found.statuses) & set(range(500, 503)), found
    assert runs[-1].ratio <= neighbour.WORST_RATIO, runs
