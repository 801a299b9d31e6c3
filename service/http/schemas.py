"""Base classes, field types and shared models of requests and responses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self
from uuid import UUID

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)
from pydantic.annotated_handlers import GetJsonSchemaHandler
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from service.domain import sizes
from service.domain.errors import InvalidInput
from service.domain.filters import uuid_or_none
from service.domain.moments import STORED
from service.domain.moments import Time as Time  # every response has some
from service.domain.moments import iso as iso
from service.domain.scope import ScopeMatch
from service.domain.text import is_blank
from service.kit.settings import check_zone
from service.language import tags
from service.redaction import detection


def example(**fields: Any) -> ConfigDict:
    """The `model_config` of a request with one example, which the document shows."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class RequestModel(BaseModel):
    """Base of requests. Strict: false is not an int, and unknown fields are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ResponseModel(BaseModel):
    """Base of responses. The validator is built on first use: FastAPI builds its own per route, 3 MB in all."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def read_again(cls, body: object) -> Self:
        """Parses a stored response."""
        return cls.model_validate(body, context=STORED)

    @classmethod
    def of(cls, value: object, **more: Any) -> Self:
        """Builds the response from a domain value: each field is taken from `more`, else from the value's attribute
        of that name, else from its `scope`."""
        scope = getattr(value, "scope", None)
        values = {
            name: getattr(scope if scope is not None and name in SCOPE_FIELDS else value, name)
            for name in cls.model_fields
            if name not in more
        }
        return cls(**values, **more)


SCOPE_FIELDS = frozenset({"user_id", "agent_id", "run_id", "channel"})


def _uuid(value: object) -> UUID:
    if isinstance(value, UUID):
        return value
    if isinstance(value, str) and (wanted := uuid_or_none(value)) is not None:
        return wanted
    raise ValueError("must be a UUID")


def _check_filled(value: str) -> str:
    if is_blank(value):
        raise ValueError("must not be blank")
    return value


def _check_addressable(value: str) -> str:
    if value in (".", ".."):
        raise ValueError("must not be . or .., which HTTP clients resolve as path segments")
    return value


def _check_indexable(value: str) -> str:
    if len(value.encode()) > sizes.MAX_NAME_BYTES:
        raise PydanticCustomError("too_large", f"must not be longer than {sizes.MAX_NAME_BYTES} bytes in UTF-8")
    return value


def _without_secret(value: str) -> str:
    if detection.holds_secret(value):
        raise PydanticCustomError("pii_rejected", NOT_A_NAME)
    return value


Id = Annotated[UUID, BeforeValidator(_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]
Zone = Annotated[str, Field(max_length=sizes.MAX_ZONE, examples=["Europe/Berlin"]), AfterValidator(check_zone)]
NOT_A_NAME = "contains a credential or a card number; use another name"
Secretless = AfterValidator(_without_secret)
"""For names: stored as they are or rejected with 422. Texts are redacted instead."""

VISIBLE: JsonDict = {"pattern": r"\S"}
"""`_check_filled` as far as a JSON Schema can say it: there are more invisible characters than white space."""

Name = Annotated[
    str,
    Field(min_length=1, max_length=sizes.MAX_NAME, json_schema_extra=VISIBLE),
    AfterValidator(_check_filled),
    AfterValidator(_check_addressable),
    AfterValidator(_check_indexable),
    Secretless,
]
Title = Annotated[
    str, Field(min_length=1, max_length=200, json_schema_extra=VISIBLE), AfterValidator(_check_filled), Secretless
]
"""The name of a workspace or a key; not indexed."""

Filled = Annotated[str, Field(json_schema_extra=VISIBLE), AfterValidator(_check_filled)]
Text = Annotated[
    str, Field(min_length=1, max_length=sizes.MAX_TEXT, json_schema_extra=VISIBLE), AfterValidator(_check_filled)
]
Channel = Annotated[
    str, Field(min_length=1, max_length=100, json_schema_extra=VISIBLE), AfterValidator(_check_filled), Secretless
]
Role = Annotated[str, Field(min_length=1, max_length=20, examples=["user"]), Secretless]
Speaker = Annotated[str, Field(max_length=200), Secretless]
"""The name of a speaker."""

Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Vector = Annotated[list[float], Field(max_length=sizes.MAX_DIMENSIONS)]
Metadata = dict[str, Any]


def _few_tags(given: list[str] | str) -> list[str] | str:
    for index, tag in enumerate(normalised := tags.normalise(given)):
        if len(tag) > sizes.MAX_TAG:
            raise PydanticCustomError("too_large", f"tag {index + 1} has more than {sizes.MAX_TAG} characters")
    if len(normalised) > sizes.MAX_TAGS:
        raise PydanticCustomError("too_large", f"must not be more than {sizes.MAX_TAGS}")
    if tags.levels(normalised) > sizes.MAX_TAG_LEVELS:
        raise PydanticCustomError("too_large", f"have more than {sizes.MAX_TAG_LEVELS} levels in total")
    return given


# -- what the OpenAPI document omits: code generators drop a whole body over a union of forms --------------------------


class InDocument:
    """Documents only one of the accepted forms, that of this JSON type."""

    def __init__(self, kind: Literal["array", "string"]) -> None:
        self._kind = kind

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return next(each for each in handler(core)["anyOf"] if each["type"] == self._kind)


class ChangeModel(RequestModel):
    """Base of requests in which omitting a field differs from null, an error in fields that are not `nullable`."""

    nullable: ClassVar[Collection[str]] = ()

    @model_validator(mode="after")
    def _refuse_null(self) -> Self:
        for name in sorted(self.model_fields_set.difference(self.nullable)):
            if getattr(self, name) is None:
                raise ValueError(f"{name}: cannot be null")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        reference = handler(core)
        for name, shape in handler.resolve_ref_schema(reference)["properties"].items():
            if name not in cls.nullable and "anyOf" in shape:
                kinds = [each for each in shape.pop("anyOf") if each != {"type": "null"}]
                shape.update(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})
        return reference


Tag = Annotated[str, Field(max_length=sizes.MAX_TAG)]
Tags = Annotated[
    Annotated[list[Tag], Field(max_length=sizes.MAX_TAGS)]
    | Annotated[str, Field(max_length=sizes.MAX_TAGS * (sizes.MAX_TAG + 1))],
    AfterValidator(_few_tags),
    InDocument("array"),
]
"""A list, or one comma-separated string."""

# -- fields of many responses -----------------------------------------------------------------------------------------

NextCursor = Annotated[str | None, Field(description="Pass it as `cursor` for the next page; null: this is the last")]
OnePage = Annotated[str | None, Field(description="Always null, because all results are on one page")]
OfUser = Annotated[str | None, Field(description="End user; null: none")]
OfAgent = Annotated[str | None, Field(description="Agent or persona; null: none")]
OfRun = Annotated[str | None, Field(description="One run; null: none")]
OfChannel = Annotated[str, Field(description="Soft scope; _global is visible from every channel")]


class DeletedCountResponse(ResponseModel):
    """The number of deleted items."""

    deleted: int = Field(description="Number of deleted items", examples=[1])


def url_of(operation_id: UUID) -> str:
    """The URL at which a client reads the progress of an operation."""
    return f"/v1/operations/{operation_id}"


class ScopeDeletionResponse(ResponseModel):
    """The number of deleted memories or, for more than 1,000, the operation that continues. Statuses 200 and 202 have
    the same fields."""

    deleted: int = Field(description="Number of memories deleted so far", examples=[1])
    status: Literal["done", "queued"] = Field(
        description="done, or queued: `url` reports the progress", examples=["done"]
    )
    operation_id: Id | None = Field(description="UUID of the operation; null: done")
    url: str | None = Field(description="URL of the operation; null: done")


# -- fields of memory requests ----------------------------------------------------------------------------------------

TypeName = Literal["Decision", "Pattern", "Preference", "Style", "Habit", "Insight", "Context"]

RESERVED_METADATA = frozenset(
    {
        *("id", "content", "type", "confidence", "importance", "tags", "tag_prefixes", "embedding", "archived"),
        *("timestamp", "t_valid", "t_invalid", "updated_at", "last_accessed", "relevance_score"),
    }
)
"""Fields of a memory, which are not allowed as metadata keys."""


def check_period(t_valid: datetime | None, t_invalid: datetime | None) -> None:
    """Raises ValueError unless `t_valid` lies before `t_invalid`, where both are given."""
    if t_valid and t_invalid and t_valid >= t_invalid:
        raise ValueError("t_valid: must be before t_invalid")


def refuse_reserved(metadata: Metadata | None) -> None:
    """Raises ValueError for a key that is a field; null, which removes a key, is allowed."""
    for name, value in (metadata or {}).items():
        if name in RESERVED_METADATA and value is not None:
            raise ValueError(f"metadata.{name}: is the name of a field of the memory, not of its metadata")


class ScopeFields(RequestModel):
    """A request with a scope: at least one of the three ids, given here or as the key's default."""

    user_id: Name | None = Field(None, description="End user; a hard filter", examples=["alice"])
    agent_id: Name | None = Field(None, description="Agent or persona; a hard filter")
    run_id: Name | None = Field(None, description="One run with its own facts; a hard filter")
    channel: Channel | None = Field(None, description="Soft scope such as a project; default _global")

    @property
    def scope_ids(self) -> dict[str, str | None]:
        return {"user_id": self.user_id, "agent_id": self.agent_id, "run_id": self.run_id}


SHARED_ONLY = "Only memories of the whole workspace, instead of a user's, agent's or run's"
INCLUDE_SHARED = "Include shared memories, in one ranking; default: the workspace's setting, initially false"


class ReadScopeFields(ScopeFields):
    """A request that reads a scope, with or without the memories shared in the workspace."""

    channel: Channel | None = Field(
        None, description="Soft scope; reads also include _global, lists without it every channel"
    )
    shared: bool = Field(False, description=SHARED_ONLY)
    include_shared: bool | None = Field(None, description=INCLUDE_SHARED)
    scope_match: ScopeMatch = Field(
        "all", description="With several ids: all, a memory must have each; any, one is enough"
    )


def expiry(expires_at: datetime | None, now: datetime) -> datetime | None:
    """When a memory expires, None for never; raises InvalidInput for a moment in the past."""
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("expires_at: must not be in the past.", field="expires_at")
    return expires_at


def embedding_vector(numbers: Sequence[float] | None, dimension: int) -> Any:
    """The caller's vector as float32; raises InvalidInput for a wrong length, a zero or an infinite vector."""
    if numbers is None:
        return None
    if len(numbers) != dimension:
        raise InvalidInput(f"embedding: has {len(numbers)} dimensions, but must have {dimension}.", field="embedding")
    with np.errstate(over="ignore"):  # beyond float32 it becomes infinite, and is rejected below
        vector = np.asarray(numbers, dtype=np.float32)
        length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length < 1e-6:
        raise InvalidInput("embedding: must have a finite norm above zero.", field="embedding")
    return vector


class BatchItemError(ResponseModel):
    """The error of one batch item."""

    status: int = Field(description="The HTTP status of a single request", examples=[400])
    code: str = Field(description="Error code", examples=["invalid_input"])
    detail: str = Field(description="Error message")
    field: str | None = Field(default=None, description="Path of the field inside the item; null: no single field")
