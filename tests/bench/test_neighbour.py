"""A short form of `make neighbour`, over the real service: what one workspace notices of another's hostile requests."""

from __future__ import annotations

from bench import neighbour, target
from tests.thorough import many


async def test_a_quiet_workspace_beside_a_hostile_one() -> None:
    with target.started() as service:
        found = await neighbour.measure(service, rounds=many(2, 5), seconds=1.5, clients=16)
        if not found.good:  # two short rounds say little beside other tests
            found = await neighbour.measure(service, rounds=5, seconds=1.5, clients=16)
    assert not found.failed, found
    assert found.rss_bytes < neighbour.MOST_RSS_BYTES, found
    assert found.ratio <= neighbour.WORST_RATIO, found
    assert not set(found.statuses) & set(range(500, 503)), found
