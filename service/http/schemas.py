"""Base classes and field types of requests and answers, and what several routes share."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self, TypeVar
from uuid import UUID

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.annotated_handlers import GetJsonSchemaHandler
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError

from service.domain import moments, sizes
from service.domain.errors import InvalidInput
from service.domain.scope import ScopeMatch
from service.domain.temporal import Mention, Temporal, TemporalTag, TemporalType
from service.domain.text import is_blank
from service.kit.settings import known_zone
from service.language import tags
from service.redaction import detection


class RequestModel(BaseModel):
    """A request. Strict: false is no int, and an unknown field is an error."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ResponseModel(BaseModel):
    """An answer. Its validator is built at the first use: FastAPI builds one for each route, and that is 3 MB twice."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def read_again(cls, body: object) -> Self:
        """An answer of ours, read again: its times may lie where no request can name one."""
        return cls.model_validate(body, context=ResponseModel)

    @classmethod
    def of(cls, found: object, **more: Any) -> Self:
        """The answer about a domain value: each field is taken from `more`, else from the attribute of the same name of
        the value, or of its `scope`."""
        scope = getattr(found, "scope", None)
        values = {
            name: getattr(scope if scope is not None and name in SCOPE_FIELDS else found, name)
            for name in cls.model_fields
            if name not in more
        }
        return cls(**values, **more)


SCOPE_FIELDS = frozenset({"user_id", "agent_id", "run_id", "channel"})


def _time(value: object, info: ValidationInfo) -> datetime:
    if isinstance(value, datetime):  # as the database gives them, or an adapter: a page has hundreds
        return value if value.tzinfo is UTC else value.astimezone(UTC)
    if not isinstance(value, str):
        raise ValueError("must be an ISO 8601 time in a string")
    try:
        found = datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError("must be an ISO 8601 time such as 2026-03-02T09:30:00+00:00") from None
    return found if info.context is ResponseModel else moments.utc(found)


def _uuid(value: object) -> UUID:
    if isinstance(value, UUID):
        return value
    if isinstance(value, str):
        try:
            return UUID(value)
        except ValueError:
            pass
    raise ValueError("must be a UUID")


def _filled(value: str) -> str:
    if is_blank(value):
        raise ValueError("must not be blank")
    return value


def _addressable(value: str) -> str:
    if value in (".", ".."):
        raise ValueError("must not be . or .., which clients of HTTP take for a step in the path")
    return value


def _indexable(value: str) -> str:
    if len(value.encode()) > sizes.MAX_NAME_BYTES:
        raise ValueError(f"must not be longer than {sizes.MAX_NAME_BYTES} bytes in UTF-8")
    return value


def _without_secret(value: str) -> str:
    if detection.holds_secret(value):
        raise PydanticCustomError("pii_rejected", NOT_A_NAME)
    return value


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC, ending in +00:00."""
    return (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).isoformat()


Time = Annotated[
    datetime,
    BeforeValidator(_time),
    PlainSerializer(iso, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""ISO 8601; without a zone it is UTC, `Z` is accepted, answers end in +00:00."""

Id = Annotated[UUID, BeforeValidator(_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]
Zone = Annotated[str, Field(max_length=sizes.MAX_ZONE, examples=["Europe/Berlin"]), AfterValidator(known_zone)]
NOT_A_NAME = "holds a credential or a card number; use another name"
Secretless = AfterValidator(_without_secret)
"""For whatever names something: it is kept as it is, or refused with 422. Texts are redacted instead."""

VISIBLE: JsonDict = {"pattern": r"\S"}
"""What JSON Schema can say of _filled: letters that cannot be seen are more than white space."""

Name = Annotated[
    str,
    Field(min_length=1, max_length=sizes.MAX_NAME, json_schema_extra=VISIBLE),
    AfterValidator(_filled),
    AfterValidator(_addressable),
    AfterValidator(_indexable),
    Secretless,
]
Title = Annotated[
    str, Field(min_length=1, max_length=200, json_schema_extra=VISIBLE), AfterValidator(_filled), Secretless
]
"""The name of a workspace or a key, which is in no index."""

Filled = Annotated[str, Field(json_schema_extra=VISIBLE), AfterValidator(_filled)]
Text = Annotated[
    str, Field(min_length=1, max_length=sizes.MAX_TEXT, json_schema_extra=VISIBLE), AfterValidator(_filled)
]
Channel = Annotated[
    str, Field(min_length=1, max_length=100, json_schema_extra=VISIBLE), AfterValidator(_filled), Secretless
]
Role = Annotated[str, Field(min_length=1, max_length=20, examples=["user"]), Secretless]
Speaker = Annotated[str, Field(max_length=200), Secretless]
"""The name of who said something."""

Unit = Annotated[float, Field(ge=0, le=1), AfterValidator(_finite)]
Vector = Annotated[list[float], Field(max_length=sizes.MAX_DIMENSIONS)]
Metadata = dict[str, Any]


def _few_tags(given: list[str] | str) -> list[str] | str:
    for place, tag in enumerate(found := tags.normalise(given)):
        if len(tag) > sizes.MAX_TAG:
            raise ValueError(f"tag {place + 1} has more than {sizes.MAX_TAG} characters")
    if len(found) > sizes.MAX_TAGS:
        raise ValueError(f"at most {sizes.MAX_TAGS} are kept")
    if tags.levels(found) > sizes.MAX_TAG_LEVELS:
        raise ValueError(f"have more than {sizes.MAX_TAG_LEVELS} levels together")
    return given


# -- what the document leaves out: code generators lose a whole body over a choice between forms ----------------------

Value = TypeVar("Value")
Unlisted = Annotated[Value, SkipJsonSchema()]
"""A second name of a field. It is taken, and the document shows the first one alone."""


class _OneForm:
    """Of the forms that a value may have the document shows one, of this JSON type."""

    shown: str

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return next(each for each in handler(core)["anyOf"] if each["type"] == self.shown)


class ListInDocument(_OneForm):
    """A list in the document, also where one text is taken."""

    shown = "array"


class TextInDocument(_OneForm):
    """A text in the document, also where a list is taken."""

    shown = "string"


def refuse_null(schema: JsonDict, *, but: Collection[str] = ()) -> None:
    """Takes null from the types of all fields that are not in `but`: leaving a field out is not the same."""
    fields = schema["properties"]
    assert isinstance(fields, dict)
    for name, shape in fields.items():
        if name not in but and isinstance(shape, dict) and isinstance(shape.get("anyOf"), list):
            kinds = [each for each in shape.pop("anyOf") if each != {"type": "null"}]  # type: ignore[union-attr]
            shape.update(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})  # type: ignore[arg-type]


def check_null(model: BaseModel, *, but: Collection[str] = ()) -> None:
    """Raises ValueError for a field that was sent as null and is not in `but`; the document says so by refuse_null."""
    for name in sorted(model.model_fields_set.difference(but)):
        if getattr(model, name) is None:
            raise ValueError(f"{name}: cannot be null")


Tag = Annotated[str, Field(max_length=sizes.MAX_TAG)]
Tags = Annotated[
    Annotated[list[Tag], Field(max_length=sizes.MAX_TAGS)]
    | Annotated[str, Field(max_length=sizes.MAX_TAGS * (sizes.MAX_TAG + 1))],
    AfterValidator(_few_tags),
    ListInDocument(),
]
"""A list, or one comma-separated string."""

# -- fields of many answers -------------------------------------------------------------------------------------------

NextCursor = Annotated[str | None, Field(description="Give it back as `cursor` to read on; null: nothing is left")]
OnePage = Annotated[str | None, Field(description="Always null: the answer has one page")]
OfUser = Annotated[str | None, Field(description="End user; null: none")]
OfAgent = Annotated[str | None, Field(description="Agent or persona; null: none")]
OfRun = Annotated[str | None, Field(description="One run; null: none")]
OfChannel = Annotated[str, Field(description="Soft scope; _global is seen from every channel")]


class DeletedCountResponse(ResponseModel):
    """How much a deletion took."""

    deleted: int = Field(description="How many were deleted, from 0", examples=[1])


class ScopeDeletionResponse(ResponseModel):
    """How much a deletion took, or, of more than 1,000 memories, the operation that goes on with it. With 200 and with
    202 the same fields."""

    deleted: int = Field(description="How many were deleted when this was answered, from 0", examples=[1])
    status: Literal["done", "queued"] = Field(
        description="done, or queued: `url` tells the progress", examples=["done"]
    )
    operation_id: Id | None = Field(description="UUID of the operation; null: it is done")
    url: str | None = Field(description="Where to ask for its progress; null: it is done")


# -- fields of memory requests ----------------------------------------------------------------------------------------

TypeName = Literal["Decision", "Pattern", "Preference", "Style", "Habit", "Insight", "Context"]
MAX_TTL_S = 3_155_760_000
"""A hundred years."""


RESERVED_METADATA = frozenset(
    {
        *("id", "content", "type", "confidence", "importance", "tags", "tag_prefixes", "embedding", "archived"),
        *("timestamp", "t_valid", "t_invalid", "updated_at", "last_accessed", "relevance_score"),
    }
)
"""Fields of a memory, which its metadata cannot have as keys."""


def refuse_reserved(metadata: Metadata | None) -> None:
    """Raises ValueError for a key that is a field; null, which removes a key, is fine."""
    for name, value in (metadata or {}).items():
        if name in RESERVED_METADATA and value is not None:
            raise ValueError(f"metadata.{name}: is the name of a field of the memory, not of its metadata")


class ScopeFields(RequestModel):
    """A request that names a scope: at least one of the three ids, here or as the key's default."""

    user_id: Name | None = Field(None, description="End user; a hard filter", examples=["alice"])
    agent_id: Name | None = Field(None, description="Agent or persona; a hard filter")
    run_id: Name | None = Field(None, description="One run, whose facts are its own; a hard filter")
    channel: Channel | None = Field(None, description="Soft scope such as a project; default _global")


SHARED_ONLY = "The memories of the whole workspace alone, instead of a user's, agent's or run's"
INCLUDE_SHARED = "Shared memories as well, in one ranking; default the workspace's setting, which is false"
SCOPE_MATCH = "Of several ids: all, a memory must have each; any, one of them is enough"


class ReadScopeFields(ScopeFields):
    """A request that reads a scope: of which ids, and whether with what the workspace shares."""

    shared: bool = Field(False, description=SHARED_ONLY)
    include_shared: bool | None = Field(None, description=INCLUDE_SHARED)
    scope_match: ScopeMatch = Field("all", description=SCOPE_MATCH)


def expiry(ttl_s: int | None, expires_at: datetime | None, now: datetime) -> datetime | None:
    """When a memory expires, None for never; raises InvalidInput for a moment in the past."""
    if ttl_s is not None:
        return now + timedelta(seconds=ttl_s)
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("expires_at: lies in the past.", field="expires_at")
    return expires_at


def embedding_vector(numbers: Sequence[float] | None, dimension: int) -> Any:
    """The caller's vector as float32; raises InvalidInput for a wrong length, a zero or an infinite vector."""
    if numbers is None:
        return None
    if len(numbers) != dimension:
        raise InvalidInput(f"embedding: has {len(numbers)} numbers, this service keeps {dimension}.", field="embedding")
    with np.errstate(over="ignore"):  # beyond float32 it becomes infinite, and is refused for that
        found = np.asarray(numbers, dtype=np.float32)
        length = float(np.linalg.norm(found))
    if not np.isfinite(length) or length < 1e-6:
        raise InvalidInput("embedding: must have a finite length above zero.", field="embedding")
    return found


# -- the times that a text names ---------------------------------------------------------------------------------------


class TimeMention(ResponseModel):
    """A temporal expression in the text."""

    text: str = Field(description="As it is in the text", examples=["last week"])
    start: int = Field(description="Its first character, from 0", examples=[12])
    end: int = Field(description="The character after its last one", examples=[21])
    kind: str = Field(description="date, time, datetime, range, duration or set", examples=["range"])
    begins_at: Time | None = Field(None, description="What it means, half-open; null where it is open")
    ends_at: Time | None = Field(
        None, description="The end of it, the same moment as begins_at for an instant; null where it is open"
    )


class TemporalDetails(ResponseModel):
    """The times that a text names, and how long it is valid."""

    type: TemporalType = Field(description="temporal: valid until valid_until", examples=["persistent"])
    valid_until: Time | None = Field(None, description="With type temporal: it is valid until then; else null")
    tag: TemporalTag | None = Field(None, description="Whether it is about the present, past or future; null: unset")
    mentions: list[TimeMention] = Field(default_factory=list, description="In the order of the text")


def temporal_details(found: Temporal) -> TemporalDetails:
    return TemporalDetails(
        type=found.type,
        valid_until=found.valid_until,
        tag=found.tag,
        mentions=[time_mention(each) for each in found.mentions],
    )


def time_mention(found: Mention) -> TimeMention:
    return TimeMention(
        text=found.text,
        start=found.start,
        end=found.end,
        kind=found.kind,
        begins_at=found.begins_at,
        ends_at=found.ends_at,
    )
