"""Query parameters of searches and lists, converted to the fields of a body."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel, BeforeValidator, ValidationError

from service.domain.errors import InvalidInput
from service.domain.query import TagMatch, TagMode
from service.http import errors, json_body
from service.http.deps import IncludeShared, ScopeMatching, SharedOnly
from service.http.narrowing import (
    ARCHIVED,
    AS_OF,
    MAX_TIME_QUERY,
    MAX_WORDS,
    MIN_CONFIDENCE,
    SCOPE_MODE,
    TAG_MATCH,
    TAG_MODE,
    TIME_QUERY,
    VALID_AT,
    Comma,
    ScopeMode,
    Types,
)
from service.http.schemas import Channel, Time, Zone

MAX_URL_QUERY = 20_000
"""Limit for a query in a URL: servers accept URLs of 64 kB, in which a letter can take twelve bytes."""

Body = TypeVar("Body", bound=BaseModel)


def body_of(model: type[Body], given: dict[str, Any]) -> Body:
    """The body with these parameters; raises InvalidInput with the name of the parameter."""
    try:
        return model(**given)
    except ValidationError as exc:
        raise errors.invalid(exc, model) from None


def present(**given: Any) -> dict[str, Any]:
    """The parameters that are not None."""
    return {name: value for name, value in given.items() if value is not None}


# -- lists and filters in a URL ---------------------------------------------------------------------------------------

FilterJson = Annotated[
    str | None,
    Query(
        max_length=20_000,
        description="A filter as URL-encoded JSON",
        examples=['{"field": "metadata.project", "operator": "eq", "value": "atlas"}'],
    ),
]
REPEATABLE = "Repeatable, or one comma-separated list"
Several = Annotated[list[Comma] | None, Query(max_length=MAX_WORDS, description=REPEATABLE)]


def split(given: list[str] | None, field: str) -> list[str]:
    """The values of a parameter that may be repeated or comma-separated. Raises InvalidInput for commas alone: ignoring
    them would find more than was asked for."""
    parts = _parts(given or [])
    if not parts and any(given or []):
        raise InvalidInput(f"{field}: name at least one.", field=field)
    return parts


def _split_or_refuse(given: object) -> object:
    """A list without values is returned unchanged, and then rejected."""
    return _parts(given) or given if isinstance(given, list) else given


SplitAtCommas = BeforeValidator(_split_or_refuse)
"""Splits a comma-separated list before validation; an empty list is rejected."""


def _parts(given: list[Any]) -> list[str]:
    parts = [part.strip() for each in given for part in str(each).split(",")]
    return [part for part in parts if part]


# -- conditions -------------------------------------------------------------------------------------------------------


async def _time_parameters(
    start: Annotated[Time | None, Query(description="Only memories with a `timestamp` at or after this moment")] = None,
    end: Annotated[Time | None, Query(description="Only memories with a `timestamp` before this moment")] = None,
    time_query: Annotated[
        str | None, Query(min_length=1, max_length=MAX_TIME_QUERY, description=TIME_QUERY, examples=["last week"])
    ] = None,
    timestamp: Annotated[Time | None, Query(description="Reference time for 'last week'; default now")] = None,
    timezone: Annotated[
        Zone | None, Query(description="IANA time zone for 'last week'; default: the workspace's")
    ] = None,
    valid_at: Annotated[Time | None, Query(description=VALID_AT)] = None,
    as_of: Annotated[Time | None, Query(description=AS_OF)] = None,
) -> dict[str, Any]:
    moments = present(start=start, end=end, timestamp=timestamp, valid_at=valid_at, as_of=as_of)
    return moments | present(time_query=time_query, timezone=timezone)


async def _narrowing_parameters(
    times: Annotated[dict[str, Any], Depends(_time_parameters)],
    filters: FilterJson = None,
    channels: Annotated[
        list[Channel] | None,
        Query(
            max_length=MAX_WORDS,
            description="Repeatable; several channels, instead of channel. Commas do not separate",
        ),
    ] = None,
    scope_mode: Annotated[ScopeMode, Query(description=SCOPE_MODE)] = "given",
    shared: SharedOnly = False,
    include_shared: IncludeShared = None,
    scope_match: ScopeMatching = "all",
    tags: Several = None,
    tag_match: Annotated[TagMatch, Query(description=TAG_MATCH)] = "prefix",
    tag_mode: Annotated[TagMode, Query(description=TAG_MODE)] = "any",
    exclude_tags: Several = None,
    categories: Several = None,
    types: Annotated[Types | None, SplitAtCommas, Query(description=f"{REPEATABLE}; one of these")] = None,
    min_confidence: Annotated[float | None, Query(ge=0, le=1, description=MIN_CONFIDENCE)] = None,
    include_archived: Annotated[bool, Query(description=ARCHIVED)] = False,
) -> dict[str, Any]:
    return {
        **times,
        **present(channels=channels, min_confidence=min_confidence, include_shared=include_shared),
        "shared": shared,
        "scope_match": scope_match,
        **({} if filters is None else {"filters": json_body.parse(filters.encode(), "filters")}),
        "tags": split(tags, "tags"),
        "exclude_tags": split(exclude_tags, "exclude_tags"),
        "categories": split(categories, "categories"),
        "types": list(types or []),
        "tag_match": tag_match,
        "tag_mode": tag_mode,
        "scope_mode": scope_mode,
        "include_archived": include_archived,
    }


NarrowingParameters = Annotated[dict[str, Any], Depends(_narrowing_parameters)]
