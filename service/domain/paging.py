"""The order of a list and the place of a page in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

SortField = Literal["created_at", "updated_at", "timestamp", "importance"]
SortValue = datetime | float


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The column to sort by; equal rows go by their id."""

    sort: SortField = "created_at"
    ascending: bool = False


@dataclass(frozen=True, slots=True)
class PageKey:
    """A row's place in the order; the next page starts after the last one's."""

    key: SortValue
    id: UUID
