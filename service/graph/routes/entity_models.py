"""Request and response models of entities and their relations."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from service.graph.reading import ShownRelation
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
)

MAX_ALIASES = 50
TypeWord = Annotated[Filled, Field(min_length=1, max_length=50, examples=["person"])]
Label = Annotated[Filled, Field(min_length=1, max_length=200, examples=["works_at"])]


class UpsertEntityRequest(ScopeFields):
    """An entity by its name. A field that is left out stays as it is; aliases and properties are added to the stored
    ones."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Acme Corporation",
                    "type": "organization",
                    "aliases": ["Acme", "ACME Corp"],
                    "description": "The customer of the atlas project",
                    "user_id": "alice",
                }
            ],
        }
    )

    name: Name = Field(description="Its name; an entity with this name or alias is the same entity")
    type: TypeWord | None = Field(None, description="Default concept; `people` and the like become person")
    description: Filled | None = Field(
        None, min_length=1, max_length=2_000, description="What it is; its vector is made from name and description"
    )
    aliases: list[Name] = Field(
        default_factory=list, max_length=MAX_ALIASES, description="Other names, added to the stored ones"
    )
    properties: JsonObject = Field(default_factory=dict, description="Any JSON to keep with it, merged key by key")
    salience: Unit | None = Field(None, description="0..1, default 0.5")
    embedding: Vector | None = Field(None, description="Left out: made from name and description")


class ListEntitiesRequest(ScopeFields):
    """The scope whose entities to list. At least one of user_id, agent_id, run_id."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": "alice", "type": "person"}]})

    type: TypeWord | None = Field(
        None, description="Only these, such as person, organization, location, project; left out: all"
    )
    conversation_id: Filled | None = Field(
        None, max_length=255, description="Only those that this conversation mentions: its id, or its name"
    )
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results")
    cursor: str | None = Field(None, max_length=2_000, description="next_cursor of the page before")


class CreateEntityRelationRequest(RequestModel):
    """A relation between two existing entities."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "source_id": "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c",
                    "target_id": "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2d",
                    "type": "works_at",
                    "t_valid": "2024-05-01T00:00:00Z",
                }
            ]
        }
    )

    source_id: Id = Field(description="UUID of the entity that the relation starts at")
    target_id: Id = Field(description="UUID of the entity that it leads to")
    type: Label = Field(description="Stored as given and normalised: works_at becomes WORKS_FOR")
    strength: Unit = Field(1.0, description="0..1")
    confidence: Unit = Field(1.0, description="0..1")
    properties: JsonObject = Field(default_factory=dict, description="Any JSON to keep with it")
    t_valid: Time | None = Field(None, description="First moment it is valid; left out: always was")
    t_invalid: Time | None = Field(None, description="First moment it is no longer valid; left out: still valid")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.t_valid and self.t_invalid and self.t_valid >= self.t_invalid:
            raise ValueError("t_valid: must lie before t_invalid")
        return self


class MergeEntitiesRequest(RequestModel):
    """`source_id` is merged into `target_id`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "source_id": "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c",
                    "target_id": "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2d",
                }
            ]
        }
    )

    source_id: Id = Field(description="UUID of the entity that disappears; its names become aliases")
    target_id: Id = Field(description="UUID of the entity that stays")


# -- answers ------------------------------------------------------------------------------------------------------


class EntityResponse(ResponseModel):
    """A person, place, organisation or other thing that memories mention."""

    id: Id = Field(description="UUID")
    name: str = Field(description="Its name")
    type: str = Field(description="Lower-case singular, such as person or project; concept when not known")
    aliases: list[str] = Field(description="Its other names")
    description: str | None = Field(description="What it is; null: not given")
    properties: Metadata = Field(description="As you stored them")
    salience: float = Field(description="0..1, default 0.5")
    user_id: str | None = Field(description="Whose entity; null: of no user")
    channel: OfChannel
    mentions: int = Field(description="Memories that mention it, counted up to 1,000")
    extracted_by: str = Field(description="Where it comes from: rules, llm, or caller (the API)")
    first_seen: Time = Field(description="When it was first mentioned")
    last_accessed: Time | None = Field(description="When it was last used; null: never")
    access_count: int = Field(description="How often it was used, from 0")
    version: int = Field(description="From 1, counts its changes; the ETag")
    created_at: Time = Field(description="When it was stored")
    updated_at: Time = Field(description="When it was last changed")


class EntityPage(ResponseModel):
    """By name; send `next_cursor` back for the next page."""

    results: list[EntityResponse] = Field(description="At most `limit` entities")
    next_cursor: NextCursor = None


class EntitySearchHit(EntityResponse):
    """An entity found by a search."""

    score: float = Field(description="0..1: the greater of the name match and `similarity`")
    similarity: float | None = Field(
        description="The calibrated cosine to the query, 0..1; null when one of them has no vector"
    )


class EntitySearchResponse(ResponseModel):
    """Best first."""

    results: list[EntitySearchHit] = Field(description="At most `limit` entities")
    next_cursor: OnePage = None
    warnings: list[str] = Field(
        description="What could not be done, so that hits may be missing, each as `code: sentence`",
        default_factory=list,
    )


class EntityRelationResponse(ResponseModel):
    """A relation, to be read from source to target."""

    id: Id = Field(description="UUID")
    source_id: Id = Field(description="UUID of the entity that it starts at")
    source: str = Field(description="Name of that entity")
    type: str = Field(description="The label normalised, in upper case: works_at becomes WORKS_FOR")
    label: str = Field(description="The type as it was given")
    target_id: Id = Field(description="UUID of the entity that it leads to")
    target: str = Field(description="Name of that entity")
    strength: float = Field(description="0..1")
    confidence: float = Field(description="0..1")
    properties: Metadata = Field(description="As you stored them")
    t_valid: Time | None = Field(description="First moment it is valid; null: always was")
    t_invalid: Time | None = Field(description="First moment it is no longer valid; null: still valid")
    extracted_by: str = Field(description="Where it comes from: rules, llm, or caller (the API)")
    memory_ids: list[Id] = Field(description="UUIDs of at most five memories that state it")
    created_at: Time | None = Field(description="When it was stored; null: not known")
    updated_at: Time | None = Field(description="When it was last changed; null: not known")


class EntityRelationPage(ResponseModel):
    """Strongest first. A name may mean several entities: one per user and channel."""

    entities: list[EntityResponse] = Field(description="The entities with this name")
    results: list[EntityRelationResponse] = Field(description="At most `limit` relations, in both directions")
    next_cursor: NextCursor = None


class EntityGraphNode(EntityResponse):
    """An entity reached by a walk."""

    depth: int = Field(description="Edges from the nearest start, 0..3; 0: a start itself")


class EntityGraphResponse(ResponseModel):
    """By depth, then by the strength of the edge that leads to the entity."""

    nodes: list[EntityGraphNode] = Field(description="Each once, the starts included")
    relations: list[EntityRelationResponse] = Field(description="Those between these nodes")
    truncated: bool = Field(
        description="true: a node had more than its 50 strongest edges, or there were more nodes than `limit`"
    )


class EntityPathResponse(ResponseModel):
    """A shortest path; edges count in both directions."""

    found: bool = Field(description="Whether there is a path of at most `max_depth` edges")
    length: int | None = Field(description="Number of its edges; null: there is no path")
    nodes: list[EntityResponse] = Field(description="In path order, both ends included; empty when there is no path")
    relations: list[EntityRelationResponse] = Field(description="In path order")
    truncated: bool = Field(description="true: a node had more edges than were read, so a shorter path may exist")


class DeletedEntityResponse(ResponseModel):
    """The deleted entity."""

    id: Id = Field(description="UUID of the entity")
    deleted: bool = Field(description="Always true")


class EntityMergeResponse(ResponseModel):
    """A merge of one entity into another, done or undone."""

    id: Id = Field(description="UUID of the merge, for undoing it")
    source_id: Id = Field(description="UUID of the entity that was merged")
    target_id: Id = Field(description="UUID of the entity that it was merged into")
    mentions: int = Field(description="Memories whose mention moved to the target, from 0")
    relations: int = Field(description="Relations that moved to the target, from 0")
    created_at: Time = Field(description="When they were merged")
    undone_at: Time | None = Field(description="When it was undone; null: it was not")
    entities: list[EntityResponse] = Field(description="The remaining entities: the target, or both after an undo")


def relation_response(found: ShownRelation) -> EntityRelationResponse:
    return EntityRelationResponse.of(
        found.relation, source=found.source, target=found.target, memory_ids=found.memory_ids
    )
