"""Entities, the relations between them, and what walks over the entity graph return."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

RULES, LLM, CALLER = "rules", "llm", "caller"
"""The origin of an entity or relation. Those that a caller stored stay even if no memory mentions them."""

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
    """The type in stored form: `People` becomes `person`."""
    plain = " ".join(given.casefold().split())
    return PLURALS.get(plain, plain)


def display_name(given: str) -> str:
    """The name with runs of whitespace collapsed to single spaces."""
    return " ".join(given.split())


def title_case(given: str) -> str:
    """A name that was given in lower case, capitalised: `dana reyes` becomes `Dana Reyes`. Others stay as they are."""
    name = display_name(given)
    return re.sub(r"(?<![^\s-])\w", lambda first: first[0].upper(), name) if name.islower() else name


def key(name: str) -> str:
    """The identity of a name: casefolded here, because Postgres' lower() under locale C leaves Ä as it is."""
    return display_name(name).casefold()


@dataclass(frozen=True, slots=True)
class EntityOwner:
    """The owner of entities, which are distinguished by user and channel, never by agent or run."""

    workspace_id: UUID
    user_id: str | None
    channel: str


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """A name as written, its type, and a model's description of it."""

    name: str
    type: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """A person, place or thing that memories name. `salience` 0..1. `mentions`: the memories that name it, counted up
    to a thousand."""

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
class EntityRelation:
    """A directed edge with the names of its ends. `label` as it was given, `type` the same normalised (works_at →
    WORKS_FOR). `strength` and `confidence` 0..1; valid in the half-open [t_valid, t_invalid), unbounded where None.
    `memory_ids`: some of the memories that state it."""

    id: UUID
    source_id: UUID
    source: str
    type: str
    label: str
    target_id: UUID
    target: str
    strength: float
    confidence: float
    properties: Mapping[str, Any]
    t_valid: datetime | None
    t_invalid: datetime | None
    extracted_by: str
    created_at: datetime
    updated_at: datetime
    memory_ids: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities in the order of the walk, each with the number of edges to the nearest start, and the edges between
    them; `truncated`: a node had more edges, or there were more entities, than the limits allow."""

    depths: Mapping[UUID, int]
    relations: tuple[EntityRelation, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class EntityPath:
    """A shortest path from the first of `entity_ids` to the last; empty when there is none. `truncated`: a node had
    more edges than were read, so a shorter path may exist."""

    entity_ids: tuple[UUID, ...]
    relations: tuple[EntityRelation, ...]
    truncated: bool
