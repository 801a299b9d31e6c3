"""Request and response models for changing, deleting and promoting memories."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from service.domain.query import Detail
from service.domain.sizes import MAX_ITEMS, MAX_TEXT
from service.domain.text import is_blank
from service.http.free_json import JsonObject
from service.http.reads import DETAIL
from service.http.schemas import (
    Id,
    Name,
    NextCursor,
    RequestModel,
    ResponseModel,
    Tags,
    Text,
    Time,
    TypeName,
    Unit,
    check_null,
    example,
    refuse_null,
    refuse_reserved,
)
from service.memories.routes.memory_models import MemoryItem, MemoryResponse

NULLABLE = frozenset({"tags", "metadata", "t_valid", "t_invalid", "expires_at"})
"""Fields that a PATCH may set to null."""


def _patch_rules(schema: JsonDict) -> None:
    refuse_null(schema, but=NULLABLE)
    schema["examples"] = [{"importance": 0.9, "metadata": {"reviewed": True}}]


class PatchMemoryRequest(RequestModel):
    """Only the given fields change. `metadata` is merged key by key, null removes a key; `tags` replaces all tags."""

    model_config = ConfigDict(json_schema_extra=_patch_rules)

    content: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_TEXT,
        description="The new text; it is redacted, its times and categories are determined again, and a job embeds it",
        examples=["Lives in Porto since May."],
    )
    tags: Tags | None = Field(
        None,
        description="Replaces all tags; null removes them. A list, or one comma-separated string",
        examples=[["home"]],
    )
    importance: Unit | None = Field(None, description="0..1")
    importance_level: int | None = Field(None, ge=1, le=10, description="1..10; instead of importance")
    type: TypeName | None = Field(None, description="One of seven types; a new text does not change it")
    type_confidence: Unit | None = Field(None, description="Confidence in the type, 0..1")
    fact_confidence: Unit | None = Field(None, description="Confidence in the fact, 0..1")
    metadata: JsonObject | None = Field(
        None,
        description="Merged key by key; a null value removes the key, null removes all keys",
        examples=[{"reviewed": True}],
    )
    t_valid: Time | None = Field(None, description="Valid from this moment on; null: no start")
    t_invalid: Time | None = Field(None, description="Valid until this moment; null: no end")
    expires_at: Time | None = Field(None, description="When it expires; null: never")
    timestamp: Time | None = Field(None, description="Only with allow_system_fields")
    updated_at: Time | None = Field(None, description="Only with allow_system_fields")
    last_accessed: Time | None = Field(None, description="Only with allow_system_fields")
    allow_system_fields: bool = Field(False, description="Needs the right memory:admin")
    reserves_names: ClassVar[bool] = True

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_null(self, but=NULLABLE)
        if {"importance", "importance_level"} <= self.model_fields_set:
            raise ValueError("importance: give importance or importance_level, not both")
        if self.content is not None and is_blank(self.content):
            raise ValueError("content: must not be blank")
        if self.reserves_names:
            refuse_reserved(self.metadata)
        return self


class PutMemoryRequest(RequestModel):
    """The new text."""

    model_config = example(content="Lives in Porto since May.")

    content: Text = Field(description="The new text")


class PromoteMemoryRequest(RequestModel):
    """Why to promote the memory."""

    reason: str | None = Field(
        None,
        min_length=1,
        max_length=1_000,
        examples=["true in every project"],
        description="The reason, kept in the history",
    )


class MemoryIdsRequest(RequestModel):
    """Ids of memories; one that is not a UUID is not found."""

    model_config = example(ids=["0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"])

    ids: list[Name] = Field(
        min_length=1,
        max_length=MAX_ITEMS,
        examples=[["0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"]],
        description="UUIDs of memories; 1,000 at most",
    )


class GetMemoriesRequest(MemoryIdsRequest):
    """Ids of memories to read."""

    cursor: str | None = Field(None, max_length=100, description="next_cursor of the previous page, with the same ids")
    detail: Detail = Field("lean", description=DETAIL)


# -- answers ------------------------------------------------------------------------------------------------------


class DeletedMemoryResponse(ResponseModel):
    """The outcome of deleting a memory."""

    id: Id = Field(description="UUID of the memory")
    deleted: bool = Field(description="Always true")
    already_deleted: bool = Field(description="Whether it had been deleted before")
    message: str = Field(
        description="The outcome as a sentence", examples=["Memory 0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c deleted"]
    )


class PromotedMemoryResponse(MemoryResponse):
    """The memory in `_global`."""

    promoted_from: Id = Field(description="UUID of the original, which stays in its channel")


class MemoriesByIdResponse(ResponseModel):
    """The memories in the order of their ids."""

    results: list[MemoryItem] = Field(description="The memories that exist, each once")
    missing: list[str] = Field(description="Ids without a memory, as sent")
    next_cursor: NextCursor = None


class DeletedMemoryItem(ResponseModel):
    """The outcome for one id."""

    id: str = Field(description="As sent")
    status: int = Field(description="200: deleted now or before; 404: unknown")
    deleted: bool = Field(description="Whether it was deleted, now or before")
    already_deleted: bool = Field(description="Whether it had been deleted before")


class DeletedMemoriesResponse(ResponseModel):
    """The outcome for each id."""

    results: list[DeletedMemoryItem] = Field(description="One per id, in order")
    deleted: int = Field(description="Number of memories deleted by this request")
