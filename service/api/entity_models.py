"""How do entities and their relations look on the wire?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator

from service.api.memory_models import SCOPE_SCHEMA, ScopedBody
from service.api.wire import Body, Filled, Id, Metadata, Name, Reply, Time, Unit
from service.domain.entity import Entity, EntityRelation

MAX_ALIASES = 50
TypeWord = Annotated[Filled, Field(min_length=1, max_length=50, examples=["person"])]
Label = Annotated[Filled, Field(min_length=1, max_length=200, examples=["works_at"])]


class EntityIn(ScopedBody):
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


class EntityListIn(ScopedBody):
    model_config = ConfigDict(
        json_schema_extra={"anyOf": SCOPE_SCHEMA, "examples": [{"user_id": "alice", "type": "person"}]}
    )

    type: TypeWord | None = Field(None, description="Only these, such as person, organization, location, project")
    limit: int = Field(100, ge=1, le=1_000, description="At most so many")
    cursor: str | None = Field(None, max_length=2_000, description="next_cursor of the page before")


class EntityRelationIn(Body):
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
    t_valid: Time | None = Field(None, description="First moment it holds")
    t_invalid: Time | None = Field(None, description="First moment it no longer holds")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.t_valid and self.t_invalid and self.t_valid >= self.t_invalid:
            raise ValueError("t_valid: must lie before t_invalid")
        return self


class MergeIn(Body):
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


class EntityOut(Reply):
    """`mentions`: memories that name it, counted up to 1,000. `extracted_by`: rules, llm or caller."""

    id: Id
    name: str
    type: str
    aliases: list[str]
    description: str | None
    properties: Metadata
    salience: float
    user_id: str | None
    channel: str
    mentions: int
    extracted_by: str
    first_seen: Time
    last_accessed: Time | None
    access_count: int
    version: int
    created_at: Time
    updated_at: Time


class EntityPage(Reply):
    """By name; hand `next_cursor` back to read on."""

    results: list[EntityOut]
    next_cursor: str | None = None


class EntityHitOut(EntityOut):
    """`score` ranks: the better of how well a name fits and of the similarity. `similarity` is null for an entity
    without a vector, or when nothing was embedded."""

    score: float
    similarity: float | None


class EntityHits(Reply):
    """Best first. `warnings`: what could not be asked, so that less was found."""

    results: list[EntityHitOut]
    next_cursor: str | None = None
    warnings: list[str] = Field(default_factory=list)


class EntityRelationOut(Reply):
    """`label` is the type as it was given. `memory_ids`: memories that say so, five at most."""

    id: Id
    source_id: Id
    source: str
    type: str
    label: str
    target_id: Id
    target: str
    strength: float
    confidence: float
    properties: Metadata
    t_valid: Time | None
    t_invalid: Time | None
    extracted_by: str
    memory_ids: list[Id]
    created_at: Time | None
    updated_at: Time | None


class EntityRelationsPage(Reply):
    """The strongest first; `entities` are those the name means: one per channel and user it is known in."""

    entities: list[EntityOut]
    results: list[EntityRelationOut]
    next_cursor: str | None = None


class NodeOut(EntityOut):
    """`depth`: edges from the nearest start."""

    depth: int


class GraphOut(Reply):
    """The near ones first, then by the strength of the edge that leads to them. `truncated`: a node had more than its
    50 strongest edges, or there were more nodes than the limit."""

    nodes: list[NodeOut]
    relations: list[EntityRelationOut]
    truncated: bool


class PathOut(Reply):
    """`length` counts edges, null when there is no way. `truncated`: a node had more edges than were looked at, so a
    shorter way may exist."""

    found: bool
    length: int | None
    nodes: list[EntityOut]
    relations: list[EntityRelationOut]
    truncated: bool


class EntityDeletedOut(Reply):
    id: Id
    deleted: bool


class RelationsDeletedOut(Reply):
    deleted: int


class MergedOut(Reply):
    """`mentions` and `relations`: how many went over. `entities`: what is left of the two."""

    id: Id
    source_id: Id
    target_id: Id
    mentions: int
    relations: int
    created_at: Time
    undone_at: Time | None
    entities: list[EntityOut]


def entity(found: Entity) -> EntityOut:
    return EntityOut(**fields(found))


def fields(found: Entity) -> dict[str, Any]:
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


def relation(found: EntityRelation, names: Mapping[Id, str], memory_ids: list[Id]) -> EntityRelationOut:
    return EntityRelationOut(
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
