"""A short form of `make neighbour`, over the real service: what one workspace notices of another's hostile requests."""

from __future__ import annotations

from bench import neighbour, target

BUSY_RATIO = 10.0
"""What is asked of a machine that runs other tests as well; `make neighbour` asks for three, on one that does not."""


async def test_a_quiet_workspace_beside_a_hostile_one() -> None:
    with target.started() as service:
        found = await neighbour.measure(service, rounds=2, seconds=4.0, clients=16)
    assert not found.failed, found
    assert found.rss_bytes < neighbour.MOST_RSS_BYTES, found
    assert found.ratio <= BUSY_RATIO, found
    assert not set(found.statuses) & set(range(500, 503)), found
