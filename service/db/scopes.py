"""What does a scope look like in SQL?

Two readings (C56): `matching` filters by the ids that are given; `exactly` takes a missing id as NULL, which is what
writes and deduplication compare with. The workspace stands as an explicit predicate beside the policy, so that a
partition is chosen early (B1).
"""

from __future__ import annotations

from collections.abc import Sequence

from service.db.conditions import Condition
from service.domain.scope import GLOBAL_CHANNEL, Scope


def matching(alias: str, scope: Scope, channels: Sequence[str] = ()) -> Condition:
    """Rows a read of this scope may see: given ids equal, channel the active one or `_global` (R2.06), or one of
    `channels`."""
    here = _workspace(alias, scope) & _given(alias, scope)
    if channels:
        seen = sorted({*channels, scope.channel, GLOBAL_CHANNEL})
        return here & Condition(f"{alias}.channel = ANY (CAST(:channels AS text[]))", {"channels": seen})
    if scope.channel == GLOBAL_CHANNEL:
        return here & Condition(f"{alias}.channel = :channel", {"channel": GLOBAL_CHANNEL})
    return here & Condition(
        f"{alias}.channel IN (:channel, :global_channel)", {"channel": scope.channel, "global_channel": GLOBAL_CHANNEL}
    )


def exactly(alias: str, scope: Scope) -> Condition:
    """Rows of just this scope and channel: a missing id means NULL (C08)."""
    here = _workspace(alias, scope)
    for name in ("user_id", "agent_id", "run_id"):
        value = getattr(scope, name)
        column = f"{alias}.{name}"
        here &= Condition(f"{column} IS NULL") if value is None else Condition(f"{column} = :{name}", {name: value})
    return here & Condition(f"{alias}.channel = :channel", {"channel": scope.channel})


def owned(alias: str, scope: Scope, channel: str | None) -> Condition:
    """Everything that belongs to a scope and nothing else, for deleting: given ids equal, just the given channel, or
    every channel when none is given."""
    here = _workspace(alias, scope) & _given(alias, scope)
    return here & Condition(f"{alias}.channel = :channel", {"channel": channel}) if channel is not None else here


def _workspace(alias: str, scope: Scope) -> Condition:
    return Condition(f"{alias}.workspace_id = :workspace", {"workspace": scope.workspace_id})


def _given(alias: str, scope: Scope) -> Condition:
    given = {name: getattr(scope, name) for name in ("user_id", "agent_id", "run_id")}
    present = {name: value for name, value in given.items() if value is not None}
    return Condition(" AND ".join(f"{alias}.{name} = :{name}" for name in present) or "true", present)
