"""Settings of the planner for a transaction, as one string for BEGIN or in the middle of a snapshot.

Without them the planner chooses by statistics, which are those of an average workspace or of an empty table.
docs/decisions/054-steady-plans.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass


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
