"""Edges between memories, made and removed by hand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

from service.domain.errors import InvalidInput, NotFound
from service.domain.relation import Relation, RelationType
from service.domain.request import Call
from service.domain.scope import Scope
from service.graph.statements import edges
from service.postgres.engine import Session
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import plain_transaction


async def associate(
    workspace_id: UUID, relation: Relation, res: Resources, call: Call, *, kept: Collection[str] = ()
) -> tuple[Relation, bool]:
    """The edge, and whether it is new; the same triple again replaces all but the fields `kept`. Raises NotFound naming
    the missing end, or InvalidInput for memories of two users or agents, or where only one of them is shared."""
    if relation.source_id == relation.target_id:
        raise InvalidInput("target_id: a memory cannot be related to itself.", field="target_id")
    properties, _ = await pii.clean_object(relation.properties, "properties", res)
    clean = replace(relation, properties=properties)
    async with plain_transaction(workspace_id, res, call) as write:
        await write.check_share_of([clean.source_id, clean.target_id])
        source = await _ends(write.session, clean, res)
        put = await edges.put(write.session, clean, kept=kept)
        ids = [clean.source_id, clean.target_id]
        await write.audit("associate", source, ids, type=str(clean.type), strength=put[0].strength)
        return await write.answer(put)


async def _ends(session: Session, relation: Relation, res: Resources) -> Scope:
    scopes = await edges.lock_ends(session, [relation.source_id, relation.target_id], now=res.clock())
    source, target = scopes.get(relation.source_id), scopes.get(relation.target_id)
    if source is None:
        raise NotFound.of("memory")
    if target is None:
        raise NotFound("target_id: there is no memory with this id.", field="target_id")
    for name, mine, theirs in (("user", source.user_id, target.user_id), ("agent", source.agent_id, target.agent_id)):
        if mine is not None and theirs is not None and mine != theirs:
            raise InvalidInput(f"target_id: belongs to another {name}.", field="target_id")
    if source.is_shared != target.is_shared:
        whose = "everyone" if target.is_shared else "somebody, and this memory to everyone"
        raise InvalidInput(f"target_id: belongs to {whose}; no relation leads there.", field="target_id")
    return source


async def dissociate(
    workspace_id: UUID,
    source_id: UUID,
    target_id: UUID,
    relation_type: RelationType | None,
    res: Resources,
    call: Call,
) -> int:
    """The number of deleted edges from source to target, which may be 0. Raises as `associate` does."""
    async with plain_transaction(workspace_id, res, call) as write:
        await write.check_share_of([source_id, target_id])
        ends = await edges.lock_ends(write.session, [source_id, target_id], now=res.clock())
        if source_id not in ends:
            raise NotFound.of("memory")
        removed = await edges.remove(write.session, source_id, target_id, relation_type)
        if removed:
            ids = [source_id, target_id]
            await write.audit("dissociate", ends[source_id], ids, type=relation_type and str(relation_type))
        return await write.answer(removed)
