"""What else belongs to a subject, beside its memories and their past?

Rows of tables where the application may delete: they go with the scope, in the same transaction, whether it is erased
from history too (purge) or its memories are deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from service.db.cognition import goals, invocations, strategies, working
from service.db.engine import Session
from service.domain.scope import Scope

Erase = Callable[[Session, Scope, str | None], Awaitable[int]]

TABLES: Mapping[str, Erase] = MappingProxyType(
    {
        "working_item": working.erase,
        "goal": goals.erase,
        "strategy": strategies.erase,
        "tool_invocation": invocations.erase,
    }
)


async def erase(session: Session, scope: Scope, channel: str | None) -> dict[str, int]:
    """Rows removed by table, of all that has every given id (and the channel, if one is given). Before the
    conversations go: by them a run's sessions are found."""
    return {name: await of_table(session, scope, channel) for name, of_table in TABLES.items()}
