"""A short form of `make neighbour`, over the real service: what one workspace notices of another's hostile requests."""

from __future__ import annotations

from bench import neighbour, target
from tests.thorough import THOROUGH, many


async def test_a_quiet_workspace_beside_a_hostile_one() -> None:
    with target.started() as service:
        found = await neighbour.measure(service, rounds=many(1, 5), seconds=1.5, clients=many(12, 16))
    assert not found.failed, found
    assert found.rss_bytes < neighbour.MOST_RSS_BYTES, found
    assert not set(found.statuses) & set(range(500, 503)), found
    if THOROUGH:  # one short round says little of time while other tests run
        assert found.ratio <= neighbour.WORST_RATIO, found
