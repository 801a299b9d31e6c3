"""How do entities and their relations look on the wire?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator

from service.api.memory_models import SCOPE_SCHEMA, ScopeFields
from service.api.schemas import (
    Filled,
    Id,
    Metadata,
    Name,
    NextCursor,
    OfChannel,
    OnePage,
    RequestModel,
    ResponseModel,
    Time,
    Unit,
)
from service.domain.entity import Entity, EntityRelation

MAX_ALIASES = 50
TypeWord = Annotated[Filled, Field(min_length=1, max_length=50, examples=["person"])]
Label = Annotated[Filled, Field(min_length=1, max_length=200, examples=["works_at"])]


class UpsertEntityRequest(ScopeFields):
    """An entity by its name. What is left out stays as it is; aliases and properties are added to those there are."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": SCOPE_SCHEMA,
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

    name: Name = Field(description="What it is called: known by this name, or an alias, it is the same entity")
    type: TypeWord | None = Field(None, description="Default concept; people and the like are taken as person")
    description: Filled | None = Field(
        None, min_length=1, max_length=2_000, description="What it is; its vector is made of name and description"
    )
    aliases: list[Name] = Field(
        default_factory=list, max_length=MAX_ALIASES, description="Other names of it, added to those there are"
    )
    properties: Metadata = Field(
        default_factory=dict, description="Whatever you like to keep with it, merged key by key"
    )
    salience: Unit | None = Field(None, description="0..1, default 0.5")
    embedding: list[float] | None = Field(None, description="Left out: made of name and description")


class ListEntitiesRequest(ScopeFields):
    """A scope whose entities are wanted. At least one of user_id, agent_id, run_id."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": SCOPE_SCHEMA, "examples": [{"user_id": "alice", "type": "person"}]}
    )

    type: TypeWord | None = Field(
        None, description="Only these, such as person, organization, location, project; left out: all"
    )
    limit: int = Field(100, ge=1, le=1_000, description="At most so many")
    cursor: str | None = Field(None, max_length=2_000, description="next_cursor of the page before")


class CreateEntityRelationRequest(RequestModel):
    """A relation between two entities that there are."""

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

    source_id: Id = Field(description="UUID of the entity that the relation begins at")
    target_id: Id = Field(description="UUID of the entity that it leads to")
    type: Label = Field(description="Kept as given, and normalised: works_at is WORKS_FOR")
    strength: Unit = Field(1.0, description="0..1")
    confidence: Unit = Field(1.0, description="0..1: how sure it is")
    properties: Metadata = Field(default_factory=dict, description="Whatever you like to keep with it")
    t_valid: Time | None = Field(None, description="First moment it holds; left out: always did")
    t_invalid: Time | None = Field(None, description="First moment it no longer holds; left out: it goes on")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.t_valid and self.t_invalid and self.t_valid >= self.t_invalid:
            raise ValueError("t_valid: must lie before t_invalid")
        return self


class MergeEntitiesRequest(RequestModel):
    """`source_id` becomes part of `target_id`."""

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

    source_id: Id = Field(description="UUID of the entity that goes; its names become aliases")
    target_id: Id = Field(description="UUID of the entity that stays")


# -- answers ------------------------------------------------------------------------------------------------------


class EntityResponse(ResponseModel):
    """A name that memories speak of."""

    id: Id = Field(description="UUID")
    name: str = Field(description="What it is called")
    type: str = Field(description="Lower-case and singular, such as person or project; concept where nobody said")
    aliases: list[str] = Field(description="Its other names")
    description: str | None = Field(description="What it is; null: nobody said")
    properties: Metadata = Field(description="Yours")
    salience: float = Field(description="0..1, 0.5 unless somebody said otherwise")
    user_id: str | None = Field(description="Whose it is; null: nobody's")
    channel: OfChannel
    mentions: int = Field(description="Memories that name it, from 0, counted up to 1,000")
    extracted_by: str = Field(
        description="Who says that there is one: rules, llm, or caller for what came over the API"
    )
    first_seen: Time = Field(description="When it was first named")
    last_accessed: Time | None = Field(description="When it was last used; null: never")
    access_count: int = Field(description="How often it was used, from 0")
    version: int = Field(description="From 1, one more with each change of it; the ETag")
    created_at: Time = Field(description="When it was stored")
    updated_at: Time = Field(description="When it was last changed")


class EntityPage(ResponseModel):
    """By name; hand `next_cursor` back to read on."""

    results: list[EntityResponse] = Field(description="At most `limit` entities")
    next_cursor: NextCursor = None


class EntitySearchHit(EntityResponse):
    """An entity that answers."""

    score: float = Field(description="0..1: the better of how well a name fits and of `similarity`")
    similarity: float | None = Field(
        description="The calibrated cosine to the question, 0..1; null without a vector, or when nothing was embedded"
    )


class EntitySearchResponse(ResponseModel):
    """Best first."""

    results: list[EntitySearchHit] = Field(description="At most `limit` entities")
    next_cursor: OnePage = None
    warnings: list[str] = Field(
        description="What could not be asked, so that less was found, each as `code: sentence`", default_factory=list
    )


class EntityRelationResponse(ResponseModel):
    """How an entity stands to another: read it from source to target."""

    id: Id = Field(description="UUID")
    source_id: Id = Field(description="UUID of the entity that it begins at")
    source: str = Field(description="Name of that entity")
    type: str = Field(description="The label normalised, in upper case: works_at is WORKS_FOR")
    label: str = Field(description="The type as it was given")
    target_id: Id = Field(description="UUID of the entity that it leads to")
    target: str = Field(description="Name of that entity")
    strength: float = Field(description="0..1")
    confidence: float = Field(description="0..1: how sure it is")
    properties: Metadata = Field(description="Yours")
    t_valid: Time | None = Field(description="First moment it holds; null: always did")
    t_invalid: Time | None = Field(description="First moment it no longer holds; null: it goes on")
    extracted_by: str = Field(description="Who says so: rules, llm, or caller for what came over the API")
    memory_ids: list[Id] = Field(description="UUIDs of memories that say so, five at most")
    created_at: Time | None = Field(description="When it was stored; null: not known")
    updated_at: Time | None = Field(description="When it was last changed; null: not known")


class EntityRelationPage(ResponseModel):
    """The strongest first. The name may mean several entities: one per channel and user it is known in."""

    entities: list[EntityResponse] = Field(description="Those that the name means")
    results: list[EntityRelationResponse] = Field(description="At most `limit` relations, in both directions")
    next_cursor: NextCursor = None


class EntityGraphNode(EntityResponse):
    """An entity that a walk came to."""

    depth: int = Field(description="Edges from the nearest start, 0..3; 0: it is a start")


class EntityGraphResponse(ResponseModel):
    """The near ones first, then by the strength of the edge that leads to them."""

    nodes: list[EntityGraphNode] = Field(description="Each once, the starts included")
    relations: list[EntityRelationResponse] = Field(description="Those between these nodes")
    truncated: bool = Field(
        description="true: a node had more than its 50 strongest edges, or there were more nodes than `limit`"
    )


class EntityPathResponse(ResponseModel):
    """A shortest way, whatever the direction of its edges."""

    found: bool = Field(description="Whether there is a way of at most `max_depth` edges")
    length: int | None = Field(description="Edges of it; null: there is none")
    nodes: list[EntityResponse] = Field(
        description="In the order of the way, both ends included; empty when there is none"
    )
    relations: list[EntityRelationResponse] = Field(description="In the order of the way")
    truncated: bool = Field(description="true: a node had more edges than were looked at, so a shorter way may exist")


class DeletedEntityResponse(ResponseModel):
    """The entity that is gone."""

    id: Id = Field(description="UUID of the entity")
    deleted: bool = Field(description="Always true")


class EntityMergeResponse(ResponseModel):
    """One entity made part of another, or the two of them again."""

    id: Id = Field(description="UUID of the merge, to undo it by")
    source_id: Id = Field(description="UUID of the entity that went")
    target_id: Id = Field(description="UUID of the entity that it became part of")
    mentions: int = Field(description="Memories whose mention went over, from 0")
    relations: int = Field(description="Relations that went over, from 0")
    created_at: Time = Field(description="When they were merged")
    undone_at: Time | None = Field(description="When that was taken back; null: it stands")
    entities: list[EntityResponse] = Field(description="What is left of the two: the target, after an undo both")


def entity_response(found: Entity) -> EntityResponse:
    return EntityResponse(**entity_fields(found))


def entity_fields(found: Entity) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "type": found.type,
        "aliases": list(found.aliases),
        "description": found.description,
        "properties": dict(found.properties),
        "salience": found.salience,
        "user_id": found.user_id,
        "channel": found.channel,
        "mentions": found.mentions,
        "extracted_by": found.extracted_by,
        "first_seen": found.first_seen,
        "last_accessed": found.last_accessed,
        "access_count": found.access_count,
        "version": found.version,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }


def relation_response(found: EntityRelation, names: Mapping[Id, str], memory_ids: list[Id]) -> EntityRelationResponse:
    return EntityRelationResponse(
        id=found.id,
        source_id=found.source_id,
        source=names[found.source_id],
        type=found.type,
        label=found.label,
        target_id=found.target_id,
        target=names[found.target_id],
        strength=found.strength,
        confidence=found.confidence,
        properties=dict(found.properties),
        t_valid=found.t_valid,
        t_invalid=found.t_invalid,
        extracted_by=found.extracted_by,
        memory_ids=memory_ids,
        created_at=found.created_at,
        updated_at=found.updated_at,
    )
