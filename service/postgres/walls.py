"""The wall of a request's transactions.

A key made for one user must not reach another's rows, whatever a route asks for. So the wall is not a parameter of a
verb that could be forgotten: a request has a view of the database within its wall (`Database.within`). Each of its
transactions takes the role `loxodon_walled`, whose restrictive policies compare every row with the settings of the
transaction (service/postgres/sql/walls.sql, docs/decisions/045-walls.md). Without a wall nothing is sent or compared.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import lru_cache

from service.domain.access import Wall
from service.postgres.roles import WALLED


def opening(wall: Wall) -> str:
    """The SQL after BEGIN in a transaction with the wall; empty without one."""
    return _opening(wall) if wall else ""


@lru_cache(maxsize=1_000)
def _opening(wall: Wall) -> str:
    settings = {
        "user_id": wall.user_id or "",
        "agent_id": wall.agent_id or "",
        "run_id": wall.run_id or "",
        "channels": _array(wall.channels) if wall.channels else "",
        "digest": wall.digest,
        "json": json.dumps(asdict(wall)),
    }
    sets = ", ".join(f"set_config('loxodon.wall_{name}', {_text(value)}, true)" for name, value in settings.items())
    return f"; SELECT {sets}; SET LOCAL ROLE {WALLED}"


def _text(value: str) -> str:
    """A literal of a caller's text as hexadecimal digits: a simple-protocol string takes no parameters."""
    return f"convert_from(decode('{value.encode().hex()}', 'hex'), 'UTF8')" if value else "''"


def _array(names: tuple[str, ...]) -> str:
    """A text[] literal with every name in quotes; a backslash escapes quotes and backslashes."""
    quoted = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return "{" + ", ".join(f'"{name}"' for name in quoted) + "}"
