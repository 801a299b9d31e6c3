"""The times that a text mentions, and the end of its validity."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from service.domain.moments import Time


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
class TimeMention:
    """A temporal expression in the text."""

    text: Annotated[str, Field(description="The expression, as in the text", examples=["last week"])]
    start: Annotated[int, Field(description="Index of its first character, from 0", examples=[12])]
    end: Annotated[int, Field(description="Index after its last character", examples=[21])]
    kind: Annotated[str, Field(description="date, time, datetime, range, duration or set", examples=["range"])]
    begins_at: Annotated[Time | None, Field(description="Start of the interval it means; null: open")] = None
    ends_at: Annotated[
        Time | None,
        Field(description="End of the interval, exclusive; equal to begins_at for an instant; null: open"),
    ] = None


@dataclass(frozen=True, slots=True)
class TemporalDetails:
    """The times that a text mentions, and how long it is valid."""

    type: Annotated[TemporalType, Field(description="temporal: valid until valid_until", examples=["persistent"])]
    valid_until: Annotated[
        Time | None, Field(description="When it ceases to be valid, with type temporal; else null")
    ] = None
    tag: Annotated[
        TemporalTag | None, Field(description="Whether it is about the present, past or future; null: unknown")
    ] = None
    mentions: Annotated[tuple[TimeMention, ...], Field(description="In text order")] = field(default_factory=tuple)
