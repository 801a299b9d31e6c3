"""Filters and other conditions of searches and lists, parsed into domain values."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache, partial
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from service.domain import filters, sizes
from service.domain.errors import InvalidInput
from service.domain.query import EVER, Narrow, ScopeId, TagMatch, TagMode, Window
from service.domain.scope import Scope
from service.http.free_json import any_json
from service.http.schemas import (
    Channel,
    InDocument,
    ReadScopeFields,
    RequestModel,
    Secretless,
    Time,
    TypeName,
    Unit,
    Zone,
)
from service.language import tags, temporal
from service.runtime import pii
from service.runtime.resources import Resources

TIME_QUERY_NOT_UNDERSTOOD = "time_query_ignored: time_query was not understood as a time."
_DAY_OF_MONTH = re.compile(r"\s*(?:the\s+)?\d{1,2}(?:st|nd|rd|th)\s*", re.IGNORECASE)

# -- filters -----------------------------------------------------------------------------------------------------------

MAX_STORED_CHARS = 20_000
"""Limit for a filter that is stored for a job."""


class FilterInput(RequestModel):
    """A condition (`field`, `operator`, `value`), or exactly one of `AND`, `OR`, `NOT` over further filters.

    Fields are the columns of a memory, `tag`, `category`, or a path into its metadata (`metadata.project.name`; names
    that are not columns are looked up in metadata, too). A list matches with any of its elements. A missing value
    satisfies `ne`, `nin` and NOT but no comparison; `eq` null matches missing values.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"field": "metadata.project", "operator": "eq", "value": "atlas"},
                {
                    "AND": [
                        {"field": "category", "operator": "in", "value": ["work", "travel"]},
                        {"NOT": {"field": "tag", "operator": "eq", "value": "draft"}},
                        {"field": "created_at", "operator": "gte", "value": "2026-01-01"},
                    ]
                },
            ],
        }
    )

    field: Annotated[str, Field(min_length=1, max_length=filters.MAX_FIELD), Secretless] | None = Field(
        None,
        description="A column of a memory, or a path into its metadata of at most 8 steps",
        examples=["metadata.project"],
    )
    operator: filters.Operator | None = Field(None, description="How to compare", examples=["eq"])
    value: Annotated[JsonValue, WithJsonSchema(any_json(filters.MAX_TEXT, filters.MAX_VALUES, 0))] = Field(
        None,
        description="Text, number, true or false; a list of these for in and nin; null for eq and ne",
        examples=["atlas"],
    )
    AND: list[FilterInput] | None = Field(
        None, min_length=1, max_length=filters.MAX_PARTS, description="All of these must hold; 8 levels deep at most"
    )
    OR: list[FilterInput] | None = Field(
        None, min_length=1, max_length=filters.MAX_PARTS, description="At least one of these must hold"
    )
    NOT: FilterInput | None = Field(None, description="This must not hold")


def _not_endless(raw: object) -> object:
    if sizes.count(raw) > filters.MAX_JSON_VALUES:
        raise PydanticCustomError("too_large", f"contains more than {filters.MAX_JSON_VALUES:,} values")
    return raw


FilterTree = Annotated[FilterInput, BeforeValidator(_not_endless)]
"""The whole filter of a request."""


def tree(given: FilterInput | None, where: str = "filters") -> filters.Filter | None:
    """The filter of a request; raises InvalidInput with the path of the invalid part."""
    return filters.read(given.model_dump(exclude_unset=True), where) if given is not None else None


async def redact_tree(given: FilterInput | None, res: Resources) -> filters.Filter | None:
    """The filter of a request that is stored for a job: its texts are redacted like those of memories."""
    parsed = tree(given)
    if parsed is None or given is None:
        return None
    if len(given.model_dump_json(exclude_unset=True)) > MAX_STORED_CHARS:
        raise InvalidInput(f"filters: must not be longer than {MAX_STORED_CHARS} characters here.", field="filters")
    return await res.rules.run(filters.with_texts, parsed, partial(pii.of_words, "filters"))


# -- all conditions ----------------------------------------------------------------------------------------------------

MAX_WORDS = 100
MAX_TIME_QUERY = 200

Word = Annotated[str, Field(min_length=1, max_length=1_000)]
Words = Annotated[list[Word], Field(max_length=MAX_WORDS)]
Comma = Annotated[str, Field(max_length=10_000)]
WordList = Annotated[Words | Comma, InDocument("array")]
Types = Annotated[list[TypeName], Field(max_length=7)]

ScopeMode = Literal["given", "exact"]
AS_OF = "Memories as recorded at this moment instead of now; without those purged since"


class NarrowingFields(ReadScopeFields):
    """A scope and conditions, all of which must hold."""

    channels: list[Channel] | None = Field(
        None,
        min_length=1,
        max_length=MAX_WORDS,
        description="Several channels, in addition to _global; instead of channel",
    )
    scope_mode: ScopeMode = Field(
        "given", description="given: an omitted id does not filter; exact: memories must not have it"
    )
    filters: FilterTree | None = Field(
        None,
        description="Conditions on columns and metadata, as a tree",
        examples=[{"field": "metadata.project", "operator": "eq", "value": "atlas"}],
    )
    tags: WordList = Field(
        default_factory=list, description="One of these, or all of them (tag_mode)", examples=[["project:atlas"]]
    )
    tag_match: TagMatch = Field("prefix", description="prefix: slack matches slack:channel:general")
    tag_mode: TagMode = Field("any", description="Whether one of the tags is enough or all are required")
    exclude_tags: WordList = Field(default_factory=list, description="None with these tags; tag_match applies here too")
    categories: Words = Field(default_factory=list, description="Only memories in one of these categories")
    types: Types = Field(default_factory=list, description="Only memories of these types")
    min_confidence: Unit | None = Field(
        None, description="Minimum current_confidence, 0..1; memories without one are kept"
    )
    start: Time | None = Field(None, description="Only memories with a `timestamp` at or after this moment")
    end: Time | None = Field(None, description="Only memories with a `timestamp` before this moment")
    time_query: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_TIME_QUERY,
        description="start and end in English, such as last week or in May 2023; see `window` in the response",
        examples=["last week"],
    )
    timestamp: Time | None = Field(None, description="Reference time for 'last week' in the query; default now")
    timezone: Zone | None = Field(None, description="IANA time zone for 'last week'; default: the workspace's")
    valid_at: Time | None = Field(
        None, description="Memories valid at this moment instead of now, including past versions"
    )
    as_of: Time | None = Field(None, description=AS_OF)
    include_archived: bool = Field(False, description="Include archived memories")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.start and self.end and self.start >= self.end:
            raise ValueError("start: must be before end")
        if self.time_query is not None and (self.start or self.end):
            raise ValueError("time_query: give time_query, or start and end, not both")
        if self.channels is not None and self.channel is not None:
            raise ValueError("channel: give channel or channels, not both")
        if self.scope_mode == "exact" and self.scope_match == "any":
            raise ValueError("scope_mode: exact cannot be combined with scope_match any")
        return self

    @property
    def active_channel(self) -> str | None:
        """The caller's own channel."""
        return self.channels[0] if self.channels else self.channel

    @property
    def is_narrow(self) -> bool:
        """Whether the request has conditions, so that it needs no query."""
        return self.time_query is not None or self.is_narrow_without_time_query

    @property
    def is_narrow_without_time_query(self) -> bool:
        """Whether the request has conditions other than `time_query`, which may not be understood."""
        words = (self.tags, self.exclude_tags, self.categories, self.types)
        given = (self.filters, self.min_confidence, self.start, self.end, self.valid_at, self.as_of)
        return any(words) or any(each is not None for each in given)

    @property
    def narrowed_by(self) -> list[str] | None:
        """The names of the options used, for the audit; their values may contain what a user wrote."""
        given, usual = self.model_fields_set, _nothing_narrowed()
        used = [
            name
            for name in NarrowingFields.model_fields
            if name in given
            and name not in ReadScopeFields.model_fields
            and getattr(self, name) != getattr(usual, name)
        ]
        return used or None


@cache
def _nothing_narrowed() -> NarrowingFields:
    return NarrowingFields.model_construct()


def narrow(body: NarrowingFields, scope: Scope) -> Narrow:
    """The conditions on rows of the scope; raises InvalidInput for an invalid filter."""
    ids: tuple[ScopeId, ...] = ("user_id", "agent_id", "run_id")
    return Narrow(
        filters=tree(body.filters),
        tags=_tags(body.tags, "tags"),
        tag_match=body.tag_match,
        tag_mode=body.tag_mode,
        exclude_tags=_tags(body.exclude_tags, "exclude_tags"),
        categories=tuple(dict.fromkeys(category.strip().lower() for category in body.categories)),
        types=tuple(dict.fromkeys(body.types)),
        min_confidence=body.min_confidence,
        valid_at=body.valid_at,
        without=tuple(name for name in ids if getattr(scope, name) is None) if body.scope_mode == "exact" else (),
    )


def refuse_future(as_of: datetime | None, now: datetime) -> None:
    """Raises InvalidInput for a moment in the future."""
    if as_of is not None and as_of > now:
        raise InvalidInput("as_of: must not be in the future.", field="as_of")


async def window(body: NarrowingFields, res: Resources) -> tuple[Window, tuple[str, ...]]:
    """The time window of the request (UTC, half-open); an open one and a warning for a `time_query` that names no time,
    such as "since my birthday"."""
    if body.time_query is None:
        return Window(body.start, body.end), ()
    words, reference = body.time_query, body.timestamp or res.clock()
    zone = ZoneInfo(body.timezone or res.settings.memories.timezone)
    understood = await res.rules.run_if_long(len(words), _parse_window, words, reference, zone)
    return (EVER, (TIME_QUERY_NOT_UNDERSTOOD,)) if understood.is_open else (understood, ())


def _tags(given: list[str] | str, field: str) -> tuple[str, ...]:
    normalised = tags.normalise(given)
    if given and not normalised:
        raise InvalidInput(f"{field}: name at least one tag.", field=field)
    if len(normalised) > MAX_WORDS:
        raise InvalidInput(f"{field}: at most {MAX_WORDS} tags.", field=field)
    return normalised


def _parse_window(words: str, reference: datetime, zone: ZoneInfo) -> Window:
    """The interval, open at both ends if none is named. "May" means "in May", "the 5th" means "on the 5th"."""
    for phrase in (words, f"in {words}", *([f"on {words}"] if _DAY_OF_MONTH.fullmatch(words) else [])):
        start, end = temporal.window(phrase, reference, zone) or (None, None)
        if start is not None or end is not None:
            return EVER if start is not None and end is not None and start >= end else Window(start, end)
    return EVER
