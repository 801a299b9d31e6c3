"""What is an entity, and how can two of them stand to each other?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

RULES, LLM, CALLER = "rules", "llm", "caller"
"""Who says that there is such an entity or relation. What a caller says stays when no memory says it any more."""

TYPES = ("person", "organization", "location", "project", "tool", "technology", "product", "concept", "event")
"""The usual types, lower-case singular (C30); any other word is accepted too."""

PLURALS: Mapping[str, str] = {
    "people": "person",
    "persons": "person",
    "organisation": "organization",
    "organisations": "organization",
    "organizations": "organization",
    "company": "organization",
    "companies": "organization",
    "place": "location",
    "places": "location",
    "locations": "location",
    "projects": "project",
    "tools": "tool",
    "technologies": "technology",
    "products": "product",
    "concepts": "concept",
    "events": "event",
}


def type_name(given: str) -> str:
    """The type as it is stored: `People` → person."""
    plain = " ".join(given.casefold().split())
    return PLURALS.get(plain, plain)


def display_name(given: str) -> str:
    """The name with single blanks."""
    return " ".join(given.split())


def key(name: str) -> str:
    """The identity of a name: casefolded here, because Postgres' lower() under locale C leaves Ä (D8, C32)."""
    return display_name(name).casefold()


@dataclass(frozen=True, slots=True)
class EntityOwner:
    """Whose entities: they are told apart by user and channel, never by agent or run (C32)."""

    workspace_id: UUID
    user_id: str | None
    channel: str


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """A name as it is written, and its type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Entity:
    """`salience` 0..1. `mentions`: memories that name it, counted up to a thousand."""

    id: UUID
    user_id: str | None
    channel: str
    name: str
    type: str
    aliases: tuple[str, ...]
    description: str | None
    properties: Mapping[str, Any]
    salience: float
    extracted_by: str
    first_seen: datetime
    last_accessed: datetime | None
    access_count: int
    mentions: int
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class EntityUpsert:
    """What an upsert asks for; None leaves what is there. `aliases` and `properties` are added to those there are."""

    name: str
    type: str | None = None
    description: str | None = None
    aliases: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    salience: float | None = None


@dataclass(frozen=True, slots=True)
class EntityRelation:
    """An edge. `label` as it was given, `type` the same normalised (works_at → WORKS_FOR). `strength` and `confidence`
    0..1; it holds in the half-open [t_valid, t_invalid), open where None."""

    id: UUID
    source_id: UUID
    type: str
    label: str
    target_id: UUID
    strength: float = 1.0
    confidence: float = 1.0
    properties: Mapping[str, Any] = field(default_factory=dict)
    t_valid: datetime | None = None
    t_invalid: datetime | None = None
    extracted_by: str = CALLER
    created_at: datetime | None = None
    updated_at: datetime | None = None

    def other_end(self, seen_from: UUID) -> UUID:
        return self.source_id if self.target_id == seen_from else self.target_id


@dataclass(frozen=True, slots=True)
class ReachedEntity:
    """An entity that a walk came to: how many edges from the nearest start (0: a start), and by which edge."""

    entity_id: UUID
    depth: int
    by: EntityRelation | None


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities in the order of the walk, and the edges between them; `truncated` when a node had more edges, or there
    were more entities, than the limits let through."""

    reached: tuple[ReachedEntity, ...]
    relations: tuple[EntityRelation, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class EntityPath:
    """A shortest way from the first of `entity_ids` to the last; empty when there is none. `truncated`: a node had
    more edges than were looked at, so a shorter way may exist."""

    entity_ids: tuple[UUID, ...]
    relations: tuple[EntityRelation, ...]
    truncated: bool
