"""The times that a text mentions, and the end of its validity."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class TemporalType(StrEnum):
    """Persistent facts have no expiry, temporal ones do."""

    PERSISTENT = "persistent"
    TEMPORAL = "temporal"


class TemporalTag(StrEnum):
    """Whether a fact is about the present, the past or the future."""

    CURRENT = "current"
    PAST = "past"
    FUTURE = "future"


@dataclass(frozen=True, slots=True)
class Mention:
    """One temporal expression in a text.

    `start`, `end`: half-open character span. `begins_at`, `ends_at`: half-open interval in UTC; either may be
    None where the expression leaves it open ("since May") or names no point ("every Monday").
    `kind`: date, time, datetime, range, duration or set.
    """

    text: str
    start: int
    end: int
    kind: str
    begins_at: datetime | None = None
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Temporal:
    """The temporal reading of a text; `valid_until` (UTC) only with TEMPORAL, `tag` None where unset."""

    type: TemporalType = TemporalType.PERSISTENT
    valid_until: datetime | None = None
    tag: TemporalTag | None = None
    mentions: tuple[Mention, ...] = ()
