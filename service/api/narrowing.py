"""What narrows a search or a list: the fields of a body, and the same as query parameters."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self, TypeVar

from fastapi import Depends, Query
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from service.api import errors, middleware
from service.api.filters import FilterInput, tree
from service.api.schemas import Channel, ScopeFields, Time, TypeName, Unit, Zone
from service.domain.query import Narrow, ScopeId, TagMatch, TagMode, Window
from service.domain.scope import Scope
from service.errors import InvalidInput
from service.language import tags
from service.resources import Resources
from service.retrieval import query_parsing

MAX_WORDS = 100
MAX_TIME_QUERY = 200

Word = Annotated[str, Field(min_length=1, max_length=1_000)]
Words = Annotated[list[Word], Field(max_length=MAX_WORDS)]
Comma = Annotated[str, Field(max_length=10_000)]


ScopeMode = Literal["given", "exact"]
TAG_MATCH = "prefix: slack finds slack:channel:general"
TAG_MODE = "One of the tags is enough, or all are needed"
MIN_CONFIDENCE = "0..1: leaves out facts of a lower fact_confidence; what has none stays"
TIME_QUERY = "start and end in English words, such as last week or in May 2023; `window` tells what was understood"
ARCHIVED = "Archived memories, too"
SCOPE_MODE = "given: an id that is left out does not filter; exact: memories must not have it"


class NarrowingFields(ScopeFields):
    """A scope and what of it is wanted. Everything that is given must hold."""

    channels: list[Channel] | None = Field(
        None, min_length=1, max_length=MAX_WORDS, description="Several channels, beside _global; instead of channel"
    )
    scope_mode: ScopeMode = Field("given", description=SCOPE_MODE)
    filters: FilterInput | None = Field(None, description="What columns and metadata must be, as a tree of conditions")
    tags: Words | Comma = Field(
        default_factory=list, description="A list, or one comma-separated string", examples=[["project:atlas"]]
    )
    tag_match: TagMatch = Field("prefix", description=TAG_MATCH)
    tag_mode: TagMode = Field("any", description=TAG_MODE)
    exclude_tags: Words | Comma = Field(default_factory=list, description="None of these; tag_match counts here, too")
    categories: Words = Field(default_factory=list, description="At least one of these")
    types: list[TypeName] = Field(default_factory=list, max_length=7, description="One of these")
    min_confidence: Unit | None = Field(None, description=MIN_CONFIDENCE)
    start: Time | None = Field(None, description="Only what happened (`timestamp`) from this moment on")
    end: Time | None = Field(None, description="Only what happened before this moment")
    time_query: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_TIME_QUERY,
        description=TIME_QUERY,
        examples=["last week"],
    )
    timestamp: Time | None = Field(
        None, description="When the query is asked: 'last week' counts from here; default now"
    )
    timezone: Zone | None = Field(None, description="IANA zone in which 'last week' is meant; default the workspace's")
    valid_at: Time | None = Field(None, description="What was valid at this moment, instead of now")
    include_archived: bool = Field(False, description=ARCHIVED)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.start and self.end and self.start >= self.end:
            raise ValueError("start: must lie before end")
        if self.time_query is not None and (self.start or self.end):
            raise ValueError("time_query: give time_query, or start and end, not both")
        if self.channels is not None and self.channel is not None:
            raise ValueError("channel: give channel or channels, not both")
        return self

    @property
    def active_channel(self) -> str | None:
        """The channel that counts as the caller's own."""
        return self.channels[0] if self.channels else self.channel

    @property
    def is_narrow(self) -> bool:
        """Whether the request narrows its scope, so that it needs no query."""
        return self.time_query is not None or self.is_narrow_without_words_of_time

    @property
    def is_narrow_without_words_of_time(self) -> bool:
        """The same where `time_query` was not understood."""
        words = (self.tags, self.exclude_tags, self.categories, self.types)
        given = (self.filters, self.min_confidence, self.start, self.end, self.valid_at)
        return any(words) or any(each is not None for each in given)

    @property
    def narrowed_by(self) -> list[str] | None:
        """The names of the options that were used, for the audit: their values may hold what a user wrote."""
        given = [
            name
            for name in NarrowingFields.model_fields
            if name in self.model_fields_set - ScopeFields.model_fields.keys()
        ]
        fields = NarrowingFields.model_fields
        used = [name for name in given if getattr(self, name) != fields[name].get_default(call_default_factory=True)]
        return used or None


def narrow(body: NarrowingFields, scope: Scope) -> Narrow:
    """What a row of the scope must be; raises InvalidInput for a filter that cannot be asked."""
    ids: tuple[ScopeId, ...] = ("user_id", "agent_id", "run_id")
    return Narrow(
        filters=tree(body.filters),
        tags=_tags(body.tags, "tags"),
        tag_match=body.tag_match,
        tag_mode=body.tag_mode,
        exclude_tags=_tags(body.exclude_tags, "exclude_tags"),
        categories=tuple(dict.fromkeys(each.strip().lower() for each in body.categories)),
        types=tuple(dict.fromkeys(body.types)),
        min_confidence=body.min_confidence,
        valid_at=body.valid_at,
        without=tuple(name for name in ids if getattr(scope, name) is None) if body.scope_mode == "exact" else (),
    )


async def window(body: NarrowingFields, res: Resources) -> tuple[Window, tuple[str, ...]]:
    """The time asked for, and a warning when it was not understood."""
    if body.time_query is None:
        return Window(body.start, body.end), ()
    zone = body.timezone or res.settings.timezone
    return await query_parsing.time_window(body.time_query, body.timestamp or res.clock(), zone, res)


def _tags(given: list[str] | str, field: str) -> tuple[str, ...]:
    found = tags.normalise(given)
    if given and not found:
        raise InvalidInput(f"{field}: name at least one tag.", field=field)
    if len(found) > MAX_WORDS:
        raise InvalidInput(f"{field}: at most {MAX_WORDS} tags.", field=field)
    return found


# -- the same as query parameters -----------------------------------------------------------------------------------

FilterJson = Annotated[
    str | None,
    Query(
        max_length=20_000,
        description="A filter as URL-encoded JSON",
        examples=['{"field": "metadata.project", "operator": "eq", "value": "atlas"}'],
    ),
]
REPEATABLE = "Repeatable, or one comma-separated list"
Several = Annotated[list[str] | None, Query(description=REPEATABLE)]


def _between_commas(given: object) -> object:
    """What the words of a closed set are checked on. Where there are none the parameter stays as it came, and is
    refused: left out, it would widen what is asked for."""
    return _parts(given) or given if isinstance(given, list) else given


AtCommas = BeforeValidator(_between_commas)
"""For a list in an address, whose words hold no commas themselves."""


async def parameters(
    filters: FilterJson = None,
    channels: Annotated[
        list[Channel] | None,
        Query(description="Repeatable: several channels; instead of channel. A comma belongs to the name"),
    ] = None,
    scope_mode: Annotated[ScopeMode, Query(description=SCOPE_MODE)] = "given",
    tags: Several = None,
    tag_match: Annotated[TagMatch, Query(description=TAG_MATCH)] = "prefix",
    tag_mode: Annotated[TagMode, Query(description=TAG_MODE)] = "any",
    exclude_tags: Several = None,
    categories: Several = None,
    types: Annotated[list[TypeName] | None, AtCommas, Query(description=f"{REPEATABLE}; one of these")] = None,
    min_confidence: Annotated[float | None, Query(ge=0, le=1, description=MIN_CONFIDENCE)] = None,
    start: Annotated[Time | None, Query(description="Only what happened (`timestamp`) from this moment on")] = None,
    end: Annotated[Time | None, Query(description="Only what happened before this moment")] = None,
    time_query: Annotated[
        str | None, Query(min_length=1, max_length=MAX_TIME_QUERY, description=TIME_QUERY, examples=["last week"])
    ] = None,
    timestamp: Annotated[Time | None, Query(description="'last week' counts from here; default now")] = None,
    timezone: Annotated[
        Zone | None, Query(description="IANA zone in which 'last week' is meant; default the workspace's")
    ] = None,
    valid_at: Annotated[Time | None, Query(description="What was valid at this moment, instead of now")] = None,
    include_archived: Annotated[bool, Query(description=ARCHIVED)] = False,
) -> dict[str, Any]:
    given: dict[str, Any] = {
        "channels": channels,
        "min_confidence": min_confidence,
        "start": start,
        "end": end,
        "time_query": time_query,
        "timestamp": timestamp,
        "timezone": timezone,
        "valid_at": valid_at,
        "filters": _json(filters) if filters is not None else None,
    }
    words = {"tags": tags, "exclude_tags": exclude_tags, "categories": categories}
    listed: dict[str, Any] = {name: split(each, name) for name, each in words.items()}
    listed["types"] = list(types or [])
    fixed: dict[str, Any] = {"tag_match": tag_match, "tag_mode": tag_mode, "scope_mode": scope_mode}
    fixed["include_archived"] = include_archived
    return {name: value for name, value in given.items() if value is not None} | listed | fixed


Parameters = Annotated[dict[str, Any], Depends(parameters)]


Narrowed = TypeVar("Narrowed", bound=NarrowingFields)


def body_of(model: type[Narrowed], given: dict[str, Any]) -> Narrowed:
    """The body that these parameters amount to; raises InvalidInput naming the parameter."""
    try:
        return model(**given)
    except ValidationError as exc:
        raise errors.invalid(exc, model) from None


def _json(text: str) -> Any:
    """Looked through like a body, which a parameter is not."""
    try:
        middleware.check_json(text.encode())
    except InvalidInput as exc:
        if exc.field is None or exc.field == "body":
            raise InvalidInput(f"filters: {exc.detail.removeprefix('The body ')}", field="filters") from None
        inside = "filters" if exc.field.startswith("[") else "filters."
        raise InvalidInput(f"{inside}{exc.detail}", field=f"{inside}{exc.field}") from None
    return json.loads(text)


def split(given: list[str] | None, field: str) -> list[str]:
    """The words of a parameter that may be repeated, or hold several between commas. Raises InvalidInput for commas
    alone: they name nothing, and would leave out what was to narrow."""
    found = _parts(given or [])
    if not found and any(given or []):
        raise InvalidInput(f"{field}: name at least one.", field=field)
    return found


def _parts(given: list[Any]) -> list[str]:
    parts = [part.strip() for each in given for part in str(each).split(",")]
    return [part for part in parts if part]
