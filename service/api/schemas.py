"""Which forms do values take on the wire? The base of every request and reply model."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from service.domain.text import is_blank


class RequestModel(BaseModel):
    """A request: strict (false is not an int), and a field nobody knows is an error, not a shrug."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ResponseModel(BaseModel):
    """An answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _time(value: object) -> datetime:
    if isinstance(value, datetime):
        if value.tzinfo is UTC:  # as the database gives them: a page has hundreds
            return value
        found = value
    elif isinstance(value, str):
        try:
            found = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError("must be an ISO 8601 time such as 2026-03-02T09:30:00+00:00") from None
    else:
        raise ValueError("must be an ISO 8601 time in a string")
    try:
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise ValueError("must lie between the years 1 and 9999 in UTC") from None


def _uuid(value: object) -> UUID:
    if isinstance(value, UUID):
        return value
    if isinstance(value, str):
        try:
            return UUID(value)
        except ValueError:
            pass
    raise ValueError("must be a UUID")


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be an IANA time zone such as Europe/Berlin") from None
    return value


def _filled(value: str) -> str:
    if is_blank(value):
        raise ValueError("must not be blank")
    return value


def _indexable(value: str) -> str:
    if len(value.encode()) > MAX_NAME_BYTES:
        raise ValueError(f"must not be longer than {MAX_NAME_BYTES} bytes in UTF-8")
    return value


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with +00:00 (R16.12)."""
    return (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).isoformat()


Time = Annotated[
    datetime,
    BeforeValidator(_time),
    PlainSerializer(iso, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""ISO 8601; a naive one is taken as UTC, `Z` is accepted, replies say +00:00."""

Id = Annotated[UUID, BeforeValidator(_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]
Zone = Annotated[str, AfterValidator(_zone), Field(examples=["Europe/Berlin"])]
MAX_NAME_BYTES = 512
"""Three ids and a channel stand in one index row, which holds 2,704 bytes."""

Name = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_filled), AfterValidator(_indexable)]
Title = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_filled)]
"""The name of a workspace or a key: for people, in no index."""

Filled = Annotated[str, AfterValidator(_filled)]
Channel = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_filled)]
Unit = Annotated[float, Field(ge=0, le=1), AfterValidator(_finite)]
Metadata = dict[str, Any]

# -- what many answers tell alike ------------------------------------------------------------------------------------

NextCursor = Annotated[str | None, Field(description="Give it back as `cursor` to read on; null: nothing is left")]
OnePage = Annotated[str | None, Field(description="Always null: the answer has one page")]
OfUser = Annotated[str | None, Field(description="End user; null: none")]
OfAgent = Annotated[str | None, Field(description="Agent or persona; null: none")]
OfRun = Annotated[str | None, Field(description="One run; null: none")]
OfChannel = Annotated[str, Field(description="Soft scope; _global is seen from every channel")]


class DeletedCountResponse(ResponseModel):
    """How much a deletion took."""

    deleted: int = Field(description="How many were deleted, from 0", examples=[1])
