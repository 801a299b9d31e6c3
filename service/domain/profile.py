"""User profiles: preferences, expertise and communication style, kept apart from memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Traits:
    """The parts of a profile: JSON of the caller's own making, redacted."""

    preferences: Mapping[str, Any] = field(default_factory=dict)
    expertise_areas: Sequence[Any] = ()
    communication_style: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Profile:
    user_id: str
    traits: Traits
    version: int
    created_at: datetime
    updated_at: datetime
