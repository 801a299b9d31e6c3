"""Which entities and which of their relations a read may see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from service.domain.entity import CALLER
from service.domain.scope import Scope
from service.postgres import scopes
from service.postgres.scopes import Condition

NAMED_BY = """EXISTS (SELECT FROM memory_entity me
                JOIN memory m ON m.workspace_id = me.workspace_id AND m.id = me.memory_id
                WHERE me.workspace_id = e.workspace_id AND me.entity_id = e.id AND {memories})"""


@dataclass(frozen=True, slots=True)
class EntityScope:
    """The entities that a read may see: of the scope, or (None) of the whole workspace. `channels`: in addition to the
    scope's own and `_global`."""

    workspace_id: UUID
    scope: Scope | None
    channels: tuple[str, ...] = ()

    @property
    def rows(self) -> Condition:
        """The condition on `entity e`, served by uq_entity_… if a user is given. Entities belong to users: an agent or
        a run sees those that its memories name and, without a user, those that callers created without one. Shared
        memories show the entities that they name."""
        condition = Condition("e.workspace_id = :workspace", {"workspace": self.workspace_id})
        scope = self.scope
        if scope is None:
            return condition
        condition &= scopes.seen_channels("e", scope, self.channels)
        owned = self._match_ids(scope)
        if not scope.include_shared:
            return condition & owned
        shared = f"(e.user_id IS NULL AND {NAMED_BY.format(memories=scopes.SHARED.format(alias='m'))})"
        either = f"{owned.sql} OR {shared}" if scope.has_owner else shared
        return condition & Condition(f"({either})", owned.values)

    @staticmethod
    def _match_ids(scope: Scope) -> Condition:
        """The conditions for the given ids: all of them must match, or any, as the scope says."""
        join = " OR " if scope.match == "any" else " AND "
        parts, values = [], {}
        if scope.user_id is not None:
            parts.append("e.user_id = :user_id")
            values["user_id"] = scope.user_id
        ids = {name: value for name in ("agent_id", "run_id") if (value := getattr(scope, name)) is not None}
        if ids:
            named = NAMED_BY.format(memories="(" + join.join(f"m.{name} = :{name}" for name in ids) + ")")
            of_nobody = "" if scope.user_id is not None else f" OR (e.user_id IS NULL AND e.extracted_by = '{CALLER}')"
            parts.append(f"({named}{of_nobody})")
        return Condition(f"({join.join(parts) or 'true'})", values | ids)


@dataclass(frozen=True, slots=True)
class EdgeFilter:
    """Which edges count: those valid `at` a moment (None: all), of these types (none: all)."""

    at: datetime | None
    types: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, Any]:
        return {"at": self.at, "types": list(self.types) or None}


EdgePlace = tuple[float, UUID, UUID]
"""The end of a page: strength, other end and id of its last edge."""
