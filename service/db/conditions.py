"""A piece of a WHERE clause: its text and its values.

Statements on the hot path are put together from such pieces and kept per shape: building them from expressions each
time cost more than running them. The names of the values are fixed, so equal pieces in one statement share them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import DateTime, TextClause, Uuid, bindparam, text
from sqlalchemy.types import TypeEngine

TYPES: Mapping[str, TypeEngine[Any]] = {
    "now": DateTime(timezone=True),
    "window_start": DateTime(timezone=True),
    "window_end": DateTime(timezone=True),
    "valid_at": DateTime(timezone=True),
    "since": DateTime(timezone=True),
    "until": DateTime(timezone=True),
    "workspace": Uuid(),
}
"""Where the driver would guess wrong from the value: a bare datetime would be taken without its zone."""


NUMBERED_TIMES = re.compile(r":((?:filter|bound)_time_\w+)\b")
"""The times of a filter and of bounds: as many as there are."""


@dataclass(frozen=True, slots=True)
class Condition:
    """`sql` with named parameters, and their values."""

    sql: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"{self.sql} AND {other.sql}", {**self.values, **other.values})

    @property
    def clause(self) -> TextClause:
        """The same for a Core statement."""
        return typed(text(self.sql)).bindparams(**self.values)


def typed(statement: TextClause) -> TextClause:
    """The statement with the types of those parameters that need one."""
    named = statement.text
    kinds = {name: kind for name, kind in TYPES.items() if f":{name}" in named}
    kinds |= dict.fromkeys(NUMBERED_TIMES.findall(named), TYPES["now"])
    return statement.bindparams(*(bindparam(name, type_=kind) for name, kind in kinds.items()))
