"""The wall of a request's transactions.

A key made for one user must not reach another's rows, whatever a route asks for. So the wall is no parameter of a verb
that could be forgotten: it is set once, with the caller, and each transaction opened afterwards takes the role
`loxodon_walled`, whose restrictive policies compare every row with the settings of the transaction
(service/postgres/sql/walls.sql, docs/decisions/045-walls.md). Without a wall nothing is sent and nothing compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from functools import lru_cache

from service.domain.access import NO_WALL, Wall
from service.postgres.roles import WALLED

_wall: ContextVar[Wall] = ContextVar("wall", default=NO_WALL)


def current() -> Wall:
    """The wall of this task; empty where there is none."""
    return _wall.get()


def stand_behind(wall: Wall) -> None:
    """Puts what follows in this task behind the wall, until the block of `apart` around it ends."""
    _wall.set(wall)


@contextmanager
def apart() -> Iterator[None]:
    """Within the block nothing stands behind a wall until `stand_behind` says so: for a whole request, or for what is
    done for several."""
    token = _wall.set(NO_WALL)
    try:
        yield
    finally:
        _wall.reset(token)


def own_name(name: str) -> str:
    """A name that no other wall gives: of a stored answer, which only its own wall reads."""
    return f"{wall.digest}:{name}" if (wall := _wall.get()) else name


def opening() -> str:
    """What follows BEGIN in a transaction behind the wall; empty without one."""
    wall = _wall.get()
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
    """A text of the caller's in a simple-protocol string, which takes no parameters: as hexadecimal digits."""
    return f"convert_from(decode('{value.encode().hex()}', 'hex'), 'UTF8')" if value else "''"


def _array(names: tuple[str, ...]) -> str:
    """A text[] as Postgres reads it: in quotes, in which it knows the backslash alone."""
    quoted = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return "{" + ", ".join(f'"{name}"' for name in quoted) + "}"
