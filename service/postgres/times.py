"""The codec for times on a connection; no time is infinite."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]

from service.domain import moments

EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The epoch of Postgres, which counts microseconds."""

MICROSECOND: Final = timedelta(microseconds=1)
LEAST, MOST = (moments.FIRST - EPOCH) // MICROSECOND, (moments.END - EPOCH) // MICROSECOND - 1


async def register(connection: asyncpg.Connection[Any]) -> None:
    """The driver's own codec writes Python's first and last moment as infinity, and reads infinity as one of them
    without a zone, which cannot be compared with any other. This one takes as long."""
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", encoder=_microseconds, decoder=_moment, format="tuple"
    )


def _microseconds(moment: datetime) -> tuple[int]:
    return ((moment - EPOCH) // MICROSECOND,)


def _moment(kept: tuple[int]) -> datetime:
    (count,) = kept
    return EPOCH + timedelta(0, 0, min(max(count, LEAST), MOST))
