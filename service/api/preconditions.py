"""On which conditions is one memory touched? It is of the scope that was named (C14), and as it was when read."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header

from service.api.deps import AgentId, CallerOf, ResourcesOf, RunId, UserId
from service.db.memories import memories
from service.domain.revision import Expected
from service.memory.transactions import memory_id, missing


async def expected(
    if_match: Annotated[str | None, Header(description="The ETag of GET, or *")] = None,
) -> Expected | None:
    """What If-Match demands; None without it. A weak tag, or one that is not ours, matches nothing (RFC 9110)."""
    if if_match is None:
        return None
    tags = [tag.strip() for tag in if_match.split(",")]
    numbers = (tag[1:-1] if len(tag) > 1 and tag[0] == tag[-1] == '"' else tag for tag in tags)
    versions = frozenset(int(number) for number in numbers if number.isascii() and number.isdigit())
    return Expected(versions, anything="*" in tags)


ExpectedOf = Annotated[Expected | None, Depends(expected)]


async def belongs(
    id: str, who: CallerOf, res: ResourcesOf, user_id: UserId = None, agent_id: AgentId = None, run_id: RunId = None
) -> None:
    """Ids of a scope are not needed here; one that is given must be the memory's own, else it is not found."""
    given = (user_id, agent_id, run_id)
    if not any(given):
        return
    async with res.db.read(who.workspace_id) as session:
        found = await memories.get(session, who.workspace_id, memory_id(id))
    if found is None:
        return
    own = (found.scope.user_id, found.scope.agent_id, found.scope.run_id)
    if any(wanted is not None and wanted != there for wanted, there in zip(given, own, strict=True)):
        raise missing()


OWN = [Depends(belongs)]
