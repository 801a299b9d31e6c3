"""How do changes to memories look on the wire? Requests and answers of everything but storing and searching."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from service.api.memory_models import (
    MAX_TAGS,
    MAX_TEXT,
    MAX_TTL_S,
    ItemErrorOut,
    MemoryOut,
    Tag,
    TypeName,
    refuse_reserved,
)
from service.api.wire import Body, Id, Metadata, Name, Reply, Time, Unit
from service.domain.relation import RelationType
from service.domain.text import is_blank

RelationName = Literal[
    "OCCURRED_BEFORE",
    "SIMILAR_TO",
    "EXEMPLIFIES",
    "INVALIDATED_BY",
    "DERIVED_FROM",
    "PREFERS_OVER",
    "EVOLVED_INTO",
    "SUPERSEDES",
    "PROMOTED_FROM",
    "RELATES_TO",
    "LEADS_TO",
    "CONTRADICTS",
    "REINFORCES",
    "PART_OF",
]
NULLABLE = frozenset({"tags", "metadata", "t_valid", "t_invalid", "expires_at"})
"""What a PATCH may set to null: it is empty afterwards."""


class PatchFields(Body):
    """Only what is named changes. `metadata` is merged key by key, null removes a key; `tags` replace all tags."""

    content: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_TEXT,
        description="Another text: redacted, its times and categories read anew, its vector made by a job",
        examples=["Lives in Porto since May."],
    )
    tags: list[Tag] | str | None = Field(
        None,
        description="Instead of all tags there are; null: none. A list, or one comma-separated string",
        examples=[["home"]],
    )
    importance: Unit | None = Field(None, description="0..1")
    importance_level: int | None = Field(None, ge=1, le=10, description="1..10; instead of importance")
    type: TypeName | None = Field(None, description="One of seven kinds; it stays when the text changes")
    type_confidence: Unit | None = Field(None, description="0..1: how sure the type is")
    confidence: Unit | None = Field(None, description="The same as type_confidence")
    fact_confidence: Unit | None = Field(None, description="0..1: how sure the fact is")
    metadata: Metadata | None = Field(
        None,
        description="Merged key by key; null under a key removes it, null for all removes every key",
        examples=[{"reviewed": True}],
    )
    t_valid: Time | None = Field(None, description="First moment it counts; null: always did")
    t_invalid: Time | None = Field(None, description="First moment it no longer counts; null: it goes on")
    ttl_s: int | None = Field(
        None, ge=1, le=MAX_TTL_S, description="Seconds from now until it is gone; instead of expires_at"
    )
    expires_at: Time | None = Field(None, description="null: it stays for good")
    timestamp: Time | None = Field(None, description="With allow_system_fields only")
    updated_at: Time | None = Field(None, description="With allow_system_fields only")
    last_accessed: Time | None = Field(None, description="With allow_system_fields only")
    allow_system_fields: bool = Field(False, description="Needs the right memory:admin")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in sorted(self.model_fields_set - NULLABLE):
            if getattr(self, name) is None:
                raise ValueError(f"{name}: cannot be null")
        for one, other in (
            ("importance", "importance_level"),
            ("type_confidence", "confidence"),
            ("ttl_s", "expires_at"),
        ):
            if {one, other} <= self.model_fields_set:
                raise ValueError(f"{one}: give {one} or {other}, not both")
        if self.content is not None and is_blank(self.content):
            raise ValueError("content: must not be blank")
        refuse_reserved(self.metadata)
        if isinstance(self.tags, list) and len(self.tags) > MAX_TAGS:
            raise ValueError(f"tags: at most {MAX_TAGS} are kept")
        return self


class PatchIn(PatchFields):
    model_config = ConfigDict(json_schema_extra={"examples": [{"importance": 0.9, "metadata": {"reviewed": True}}]})


class PutIn(Body):
    """The new text, under either name."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["text"]}, {"required": ["content"]}],
            "examples": [{"text": "Lives in Porto since May."}],
        }
    )

    text: str | None = Field(None, min_length=1, max_length=MAX_TEXT, description="The new text")
    content: str | None = Field(None, min_length=1, max_length=MAX_TEXT, description="The same as text")

    @model_validator(mode="after")
    def _one_text(self) -> Self:
        if (self.text is None) == (self.content is None):
            raise ValueError("text: give the new text as text (or as content)")
        if is_blank(self.text or self.content or ""):
            raise ValueError("text: must not be blank")
        return self


class PromoteIn(Body):
    reason: str | None = Field(
        None, min_length=1, max_length=1_000, examples=["true in every project"], description="Why, for the history"
    )


class RelationIn(Body):
    """An edge from the memory of the path to `target_id`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"target_id": "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c", "type": "DERIVED_FROM"}]}
    )

    target_id: Id = Field(
        examples=["0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"], description="UUID of the memory that the edge leads to"
    )
    type: RelationName = Field(
        examples=["DERIVED_FROM"],
        description="Read from the path's memory to the target: this one is DERIVED_FROM that one",
    )
    strength: Unit = Field(1.0, description="0..1")
    properties: Metadata = Field(default_factory=dict, description="Whatever you like to keep with the edge")
    t_valid: Time | None = Field(None, description="First moment it holds")
    t_invalid: Time | None = Field(None, description="First moment it no longer holds")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.t_valid and self.t_invalid and self.t_valid >= self.t_invalid:
            raise ValueError("t_valid: must lie before t_invalid")
        return self


class IdsIn(Body):
    """Ids of memories; one that is no UUID is simply not found."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"]}]})

    ids: list[Name] = Field(
        min_length=1,
        examples=[["0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"]],
        description="UUIDs of memories; 1,000 at most",
    )


class BatchPatch(PatchFields):
    id: Name = Field(description="UUID of the memory to change")


BATCH_EXAMPLE: dict[str, JsonValue] = {
    "items": [{"id": "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c", "tags": ["project:atlas"]}]
}


class BatchPatchIn(Body):
    """Each item is its own transaction."""

    model_config = ConfigDict(json_schema_extra={"examples": [BATCH_EXAMPLE]})

    items: list[BatchPatch] = Field(
        min_length=1, description="Each like the body of PATCH /v1/memories/{id}, with its id; 100 at most"
    )


# -- answers ------------------------------------------------------------------------------------------------------


class DeletedOut(Reply):
    """`already_deleted`: it had been deleted before; nothing was there to do."""

    id: Id
    deleted: bool
    already_deleted: bool
    message: str = Field(examples=["Memory 0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c deleted"])


class DeletedManyOut(Reply):
    deleted: int


class PromotedOut(MemoryOut):
    """The memory in `_global`."""

    promoted_from: Id


class RelationOut(Reply):
    """`direction`, seen from the memory that was asked about: `out` leads away from it."""

    source_id: Id
    target_id: Id
    type: RelationType
    strength: float
    properties: dict[str, Any]
    t_valid: Time | None
    t_invalid: Time | None
    created_at: Time | None
    direction: Literal["out", "in"]


class RelationsOut(Reply):
    """The strongest first."""

    results: list[RelationOut]
    next_cursor: str | None = None


class UntiedOut(Reply):
    deleted: int


class RelatedOut(MemoryOut):
    """A memory that a walk came to, `depth` edges away, by the edge `relation`."""

    depth: int
    relation: RelationOut


class RelatedPage(Reply):
    """The nearest first, then the strongest. `truncated`: there was more than the limits let through."""

    results: list[RelatedOut]
    truncated: bool
    next_cursor: str | None = None


class GotOut(Reply):
    """The memories in the order of their ids; `missing`: ids without a memory."""

    results: list[MemoryOut]
    missing: list[str]
    next_cursor: str | None = None


class ExistsItem(Reply):
    id: str
    exists: bool


class ExistsOut(Reply):
    results: list[ExistsItem]
    next_cursor: str | None = None


class DeletedItem(Reply):
    """`status` 200: deleted now or before; 404: never seen."""

    id: str
    status: int
    deleted: bool
    already_deleted: bool


class DeletedItemsOut(Reply):
    results: list[DeletedItem]
    deleted: int


class PatchedItem(Reply):
    """How one item fared: the memory or its error."""

    index: int
    status: int
    memory: MemoryOut | None = None
    error: ItemErrorOut | None = None


class PatchedItemsOut(Reply):
    results: list[PatchedItem]
    succeeded: int
    failed: int
