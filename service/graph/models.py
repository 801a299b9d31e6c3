"""Request and response models for entities and their relations."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from service.http.free_json import JsonObject
from service.http.schemas import (
    Filled,
    Id,
    Metadata,
    Name,
    NextCursor,
    OfChannel,
    OnePage,
    RequestModel,
    ResponseModel,
    ScopeFields,
    Time,
    Unit,
    Vector,
    check_period,
    example,
)

MAX_ALIASES_AT_ONCE = 50
TypeWord = Annotated[Filled, Field(min_length=1, max_length=50, examples=["person"])]
Label = Annotated[Filled, Field(min_length=1, max_length=200, examples=["works_at"])]


class UpsertEntityRequest(ScopeFields):
    """An entity, identified by its name. Omitted fields stay as they are; aliases and properties are added to the
    stored ones."""

    model_config = example(
        name="Acme Corporation",
        type="organization",
        aliases=["Acme", "ACME Corp"],
        description="The customer of the atlas project",
        user_id="alice",
    )

    name: Name = Field(description="Its name; an existing entity with this name or alias is updated")
    type: TypeWord | None = Field(None, description="Default concept; variants are normalised: `people` becomes person")
    description: Filled | None = Field(
        None, min_length=1, max_length=2_000, description="What it is; its vector is computed from name and description"
    )
    aliases: list[Name] = Field(
        default_factory=list, max_length=MAX_ALIASES_AT_ONCE, description="Other names, added to the stored ones"
    )
    properties: JsonObject = Field(default_factory=dict, description="Your own data, merged key by key")
    salience: Unit | None = Field(None, description="0..1, default 0.5")
    embedding: Vector | None = Field(None, description="Your own vector; default: computed from name and description")


class ListEntitiesRequest(ScopeFields):
    """The scope whose entities to list. At least one of user_id, agent_id, run_id."""

    model_config = example(user_id="alice", type="person")

    type: TypeWord | None = Field(
        None, description="Only these types, such as person, organization, location, project; default: all"
    )
    conversation_id: Filled | None = Field(
        None, max_length=255, description="Only entities that this conversation, given by id or name, mentions"
    )
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results")
    cursor: str | None = Field(None, max_length=2_000, description="next_cursor of the previous page")


class CreateEntityRelationRequest(RequestModel):
    """A relation between two existing entities."""

    model_config = example(
        source_id="0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c",
        target_id="0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2d",
        type="works_at",
        t_valid="2024-05-01T00:00:00Z",
    )

    source_id: Id = Field(description="UUID of the source entity")
    target_id: Id = Field(description="UUID of the target entity")
    type: Label = Field(description="Stored as given and normalised: works_at becomes WORKS_FOR")
    strength: Unit = Field(1.0, description="0..1")
    confidence: Unit = Field(1.0, description="0..1")
    properties: JsonObject = Field(default_factory=dict, description="Your own data")
    t_valid: Time | None = Field(None, description="Valid from this moment on; default: no start")
    t_invalid: Time | None = Field(None, description="Valid until this moment; default: no end")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        check_period(self.t_valid, self.t_invalid)
        return self


class MergeEntitiesRequest(RequestModel):
    """`source_id` is merged into `target_id`."""

    model_config = example(
        source_id="0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c", target_id="0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2d"
    )

    source_id: Id = Field(description="UUID of the entity to merge; its names become aliases")
    target_id: Id = Field(description="UUID of the entity to keep")


# -- answers ------------------------------------------------------------------------------------------------------


class EntityResponse(ResponseModel):
    """A person, place, organisation or other thing that memories mention."""

    id: Id = Field(description="UUID")
    name: str = Field(description="Its name")
    type: str = Field(description="Lower case and singular, such as person or project; concept if unknown")
    aliases: list[str] = Field(description="Its other names")
    description: str | None = Field(description="What it is; null: unknown")
    properties: Metadata = Field(description="Your own data")
    salience: float = Field(description="0..1, default 0.5")
    user_id: str | None = Field(description="User it belongs to; null: none")
    channel: OfChannel
    mentions: int = Field(description="Memories that mention it, counted up to 1,000")
    extracted_by: str = Field(description="Its origin: rules, llm, or caller (the API)")
    first_seen: Time = Field(description="When it was first mentioned")
    last_accessed: Time | None = Field(description="When it was last used; null: never")
    access_count: int = Field(description="How often it was used")
    version: int = Field(description="Starts at 1, incremented by each change; the ETag")
    created_at: Time = Field(description="When it was stored")
    updated_at: Time = Field(description="When it was last changed")


class EntityPage(ResponseModel):
    """Entities by name; pass `next_cursor` as `cursor` for the next page."""

    results: list[EntityResponse] = Field(description="At most `limit` entities")
    next_cursor: NextCursor = None


class EntitySearchHit(EntityResponse):
    """An entity found by a search."""

    score: float = Field(description="0..1: the greater of the name match and `similarity`")
    similarity: float | None = Field(description="Calibrated cosine to the query, 0..1; null if either has no vector")


class EntitySearchResponse(ResponseModel):
    """Best first."""

    results: list[EntitySearchHit] = Field(description="At most `limit` entities")
    next_cursor: OnePage = None
    warnings: list[str] = Field(
        description="What was skipped, so that hits may be missing, each as `code: sentence`",
        default_factory=list,
    )


class EntityRelationResponse(ResponseModel):
    """A relation between entities, from source to target."""

    id: Id = Field(description="UUID")
    source_id: Id = Field(description="UUID of the source entity")
    source: str = Field(description="Name of the source entity")
    type: str = Field(description="The normalised type, upper case: works_at becomes WORKS_FOR")
    label: str = Field(description="The type as given")
    target_id: Id = Field(description="UUID of the target entity")
    target: str = Field(description="Name of the target entity")
    strength: float = Field(description="0..1")
    confidence: float = Field(description="0..1")
    properties: Metadata = Field(description="Your own data")
    t_valid: Time | None = Field(description="Valid from this moment on; null: no start")
    t_invalid: Time | None = Field(description="Valid until this moment; null: no end")
    extracted_by: str = Field(description="Its origin: rules, llm, or caller (the API)")
    memory_ids: list[Id] = Field(description="UUIDs of at most five memories that state it")
    created_at: Time | None = Field(description="When it was stored; null: unknown")
    updated_at: Time | None = Field(description="When it was last changed; null: unknown")


class EntityRelationPage(ResponseModel):
    """Strongest first. A name may mean several entities: one per user and channel."""

    entities: list[EntityResponse] = Field(description="The entities with this name")
    results: list[EntityRelationResponse] = Field(description="At most `limit` relations, in both directions")
    next_cursor: NextCursor = None


class EntityGraphNode(EntityResponse):
    """An entity of a neighbourhood."""

    depth: int = Field(description="Number of edges to the nearest start, 0..3; 0: a start itself")


class EntityGraphResponse(ResponseModel):
    """Entities by depth, then by the strength of the edge that leads to each."""

    nodes: list[EntityGraphNode] = Field(description="Each node once, including the starts")
    relations: list[EntityRelationResponse] = Field(description="Relations between these nodes")
    truncated: bool = Field(description="Whether a node has more than 50 edges or there are more nodes than `limit`")


class EntityPathResponse(ResponseModel):
    """A shortest path; edges are followed in both directions."""

    found: bool = Field(description="Whether there is a path of at most `max_depth` edges")
    length: int | None = Field(description="Number of edges; null: no path")
    nodes: list[EntityResponse] = Field(description="In path order, including both ends; empty without a path")
    relations: list[EntityRelationResponse] = Field(description="In path order")
    truncated: bool = Field(
        description="Whether a node has more edges than were read, so that a shorter path may exist"
    )


class DeletedEntityResponse(ResponseModel):
    """The deleted entity."""

    id: Id = Field(description="UUID of the entity")
    deleted: bool = Field(description="Always true")
