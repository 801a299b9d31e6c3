"""The codecs of a connection, for times and for vectors.

Written out as text, 384 numbers cost 0.3 ms each time, and a store sends its vector three times.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]
from pgvector import HalfVector

from service.domain import moments

EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The epoch of Postgres, which counts microseconds."""

MICROSECOND: Final = timedelta(microseconds=1)
LEAST, MOST = (moments.FIRST - EPOCH) // MICROSECOND, (moments.END - EPOCH) // MICROSECOND - 1

HALFVEC_SCHEMA = """
SELECT n.nspname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typname = 'halfvec'
"""

WARM_TYPES = "SELECT NULL::sparsevec, NULL::uuid[], NULL::integer[], NULL::float8[], NULL::timestamptz[]"
"""Types of our statements that the driver looks up in the catalogue. All at once this takes 6 ms when a connection is
opened; one by one, when a statement first needs them, each look-up adds 3 to 9 ms to a request."""


async def register(connection: asyncpg.Connection[Any]) -> None:
    """Registers times, and vectors in a database with pgvector. The driver's own codec writes Python's first and last
    moment as infinity, and reads infinity as one of them without a zone, which cannot be compared with any other."""
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", encoder=_microseconds, decoder=_moment, format="tuple"
    )
    schema = await connection.fetchval(HALFVEC_SCHEMA)
    if schema is not None:
        await connection.set_type_codec(
            "halfvec", schema=schema, encoder=_binary, decoder=HalfVector.from_binary, format="binary"
        )
        await connection.fetch(WARM_TYPES)


def _microseconds(moment: datetime) -> tuple[int]:
    return ((moment - EPOCH) // MICROSECOND,)


def _moment(kept: tuple[int]) -> datetime:
    (count,) = kept
    return EPOCH + timedelta(0, 0, min(max(count, LEAST), MOST))


def _binary(value: HalfVector | str) -> bytes:
    return (HalfVector.from_text(value) if isinstance(value, str) else value).to_binary()
