"""What a transaction sets when it begins: the planner, and the wall of its request.

Without settings the planner chooses by statistics, which are those of an average workspace or of an empty table
(docs/decisions/054-steady-plans.md).

A key made for one user must not reach another's rows, whatever a route asks for. So the wall is not a parameter of a
verb that could be forgotten: a request has a view of the database within its wall (`Database.within`). Each of its
transactions takes the role `loxodon_walled`, whose restrictive policies compare every row with the settings of the
transaction (service/postgres/sql/walls.sql, docs/decisions/045-walls.md). Without a wall nothing is sent or compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from functools import lru_cache

from service.domain.access import Wall
from service.postgres import citus
from service.postgres.roles import WALLED


def _set_local(settings: Mapping[str, str]) -> str:
    return "; ".join(f"SET LOCAL {name} = {value}" for name, value in settings.items())


_KEYED = {
    "plan_cache_mode": "force_generic_plan",  # planning takes longer than running such a statement
    # a plan made while a table was small would read all of it later
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
_STEADY = _KEYED | {
    # leave only the index that has the order asked for
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    # sizes do not matter, so the plan is the same whatever statistics there are
    "seq_page_cost": "0",
    "random_page_cost": "0",
}
_CUSTOM = dict.fromkeys(_STEADY, "DEFAULT") | {
    "enable_seqscan": "off",  # chosen for a table that a single scope nearly fills
}


@dataclass(frozen=True, slots=True)
class Plans:
    """The settings for three kinds of statements."""

    generic: str
    """For statements whose best plan is the same for all values, such as rows by their key."""

    steady: str
    """For the statements of a search, except the candidates of a large scope."""

    custom: str
    """For statements whose best plan depends on their values, such as a walk of the HNSW graph with conditions."""


ON_ONE_SERVER = Plans(_set_local(_KEYED), _set_local(_STEADY), _set_local(_CUSTOM))
# Citus finds the node of a statement by its values, which a generic plan does not know.
ON_CITUS = Plans(*(re.sub(r"SET LOCAL plan_cache_mode = \w+; ", "", sets) for sets in astuple(ON_ONE_SERVER)))


def statements(mode: str, settings: str, lock: str | None, wall: Wall, *, is_citus: bool) -> tuple[str, ...]:
    """The strings that begin a transaction: all in one, unless on Citus, whose last string goes to each node too."""
    enter = _enter(wall) if wall else ""
    if is_citus:
        return (f"{mode}; {settings}; {lock}" if lock else mode, f"{settings}{enter}; {citus.PROPAGATE}")
    return ("; ".join(filter(None, (mode, settings, lock))) + enter,)


@lru_cache(maxsize=1_000)
def _enter(wall: Wall) -> str:
    """The SQL that enters a wall."""
    settings = {
        "user_id": wall.user_id or "",
        "agent_id": wall.agent_id or "",
        "run_id": wall.run_id or "",
        "channels": _array(wall.channels) if wall.channels else "",
        "digest": wall.digest,
        "json": json.dumps(asdict(wall)),
    }
    sets = ", ".join(f"set_config('loxodon.wall_{name}', {_literal(value)}, true)" for name, value in settings.items())
    return f"; SELECT {sets}; SET LOCAL ROLE {WALLED}"


def _literal(value: str) -> str:
    """A literal of a caller's text as hexadecimal digits: a simple-protocol string takes no parameters."""
    return f"convert_from(decode('{value.encode().hex()}', 'hex'), 'UTF8')" if value else "''"


def _array(names: tuple[str, ...]) -> str:
    """A text[] literal with every name in quotes; a backslash escapes quotes and backslashes."""
    quoted = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return "{" + ", ".join(f'"{name}"' for name in quoted) + "}"
