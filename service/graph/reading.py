"""Reading entities: lists, searches by name or meaning, and walks along relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from service.domain.entity import Entity, EntityPath, EntityRelation
from service.domain.errors import EmbeddingError, NotFound
from service.domain.filters import uuid_or_none
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.episodes.turns import find
from service.graph.entity import ShownRelation, entity_not_found
from service.graph.entity_scope import EdgeFilter, EdgePlace, EntityScope
from service.graph.statements import entities, entity_relations, entity_walks
from service.postgres import direct
from service.postgres.engine import Session
from service.runtime.resources import Resources

MIN_SIMILARITY = 0.5
"""Minimum score of an entity that was found by its vector only."""

MAX_NODES = 500  # in the response of a walk, or on each side of a path: a hub has thousands of neighbours

MAX_EVIDENCE = 5
"""Memories shown per relation."""


async def list_entities(
    scope: Scope,
    res: Resources,
    *,
    kind: str | None,
    conversation: str | None,
    after: tuple[str, UUID] | None,
    limit: int,
) -> list[tuple[str, Entity]]:
    """The next entities of a scope by name, each with its key for the next page. `conversation`: only entities that it
    mentions. Raises NotFound."""
    async with res.db.snapshot(scope.workspace_id) as session:
        talk = (await find(session, scope, conversation, "conversation_id")).id if conversation else None
        seen = EntityScope(scope.workspace_id, scope)
        return await entities.page(session, seen, kind=kind, conversation_id=talk, after=after, limit=limit)


@dataclass(frozen=True, slots=True)
class EntityHit:
    """An entity found by a search: `score` is the greater of the name match and `similarity`."""

    entity: Entity
    score: float
    similarity: float | None


async def search(
    seen: EntityScope, query: CleanText, res: Resources, *, kind: str | None, limit: int, counts: bool
) -> tuple[list[EntityHit], list[str]]:
    """The best entities by name or meaning, and warnings. `counts`: whether this counts as a use."""
    warnings: list[str] = []
    try:
        vector = await res.embedder.embed_query(seen.workspace_id, query)
    except EmbeddingError:
        vector, warnings = None, ["embedding_unavailable: only names were searched."]
    async with res.db.begin(seen.workspace_id) as session:
        matches = await entities.search(session, seen, query, vector, kind=kind, generation=res.generation, limit=limit)
        hits = []
        for entity, fit, cosine in matches:
            similarity = None if cosine is None else res.embedder.query_similarity(cosine)
            score = max(fit, similarity or 0.0)
            if fit > 0 or score >= MIN_SIMILARITY:
                hits.append(EntityHit(entity, score, similarity))
        hits.sort(key=lambda hit: (-hit.score, -hit.entity.mentions, hit.entity.name))
        if counts:
            await entities.count_read(session, [hit.entity.id for hit in hits[:limit]], now=res.clock())
    return hits[:limit], warnings


async def read(seen: EntityScope, entity_id: UUID, res: Resources, *, field: str = "id") -> Entity:
    """The entity; raises NotFound when it does not exist or is outside the scope."""
    async with res.db.read(seen.workspace_id) as session:
        entity = await entities.get(session, seen, entity_id)
    if entity is None:
        raise entity_not_found(field)
    return entity


async def relations_of(
    seen: EntityScope,
    name: str,
    edges: EdgeFilter,
    res: Resources,
    *,
    after: EdgePlace | None,
    limit: int,
    counts: bool,
) -> tuple[list[Entity], list[tuple[ShownRelation, str]]]:
    """The entities with this name or id, and their relations, strongest first, with directions. Raises NotFound."""
    workspace_id = seen.workspace_id
    async with res.db.begin(workspace_id) as session:
        named, as_id = await entities.by_name(session, seen, name), uuid_or_none(name)
        if not named and as_id:
            named = list((await entities.get_many(session, seen, [as_id])).values())
        if not named:
            raise NotFound("There is no entity with this name.", field="name")
        ids = [entity.id for entity in named]
        page = await entity_relations.page(session, ids, edges, after=after, limit=limit)
        directions = {edge.id: direction for edge, direction in page}
        shown = await _show_relations(session, [edge for edge, _ in page])
        if counts:
            await entities.count_read(session, ids, now=res.clock())
    return named, [(relation, directions[relation.relation.id]) for relation in shown]


async def graph(
    seen: EntityScope, starts: list[UUID], edges: EdgeFilter, res: Resources, *, depth: int, limit: int, counts: bool
) -> tuple[list[tuple[int, Entity]], list[ShownRelation], bool]:
    """At most `limit` entities near the starts, each with its depth, the relations between them, and whether there are
    more. Raises NotFound."""
    workspace_id = seen.workspace_id
    async with res.db.begin(workspace_id) as session:
        if set(starts) - (await entities.get_many(session, seen, starts)).keys():
            raise entity_not_found("ids")
        walk = await entity_walks.neighbourhood(session, starts, edges, depth=depth, limit=limit)
        get_many = partial(entities.get_many, session, EntityScope(workspace_id, None))
        by_id, count = await direct.page_of_ids(list(walk.depths), get_many)
        relations = await _show_relations(session, walk.relations, {each.id: each.name for each in by_id.values()})
        if counts:
            await entities.count_read(session, starts, now=res.clock())
    nodes = [(away, by_id[entity_id]) for entity_id, away in walk.depths.items() if entity_id in by_id]
    return nodes, relations, walk.truncated or count < len(walk.depths)


async def path(
    seen: EntityScope, source_id: UUID, target_id: UUID, edges: EdgeFilter, res: Resources, *, max_edges: int
) -> tuple[EntityPath, list[Entity], list[ShownRelation]]:
    """A shortest path with its entities and relations in its order. Raises NotFound naming the end."""
    await read(seen, source_id, res, field="source_id")
    await read(seen, target_id, res, field="target_id")
    workspace_id = seen.workspace_id
    async with res.db.snapshot(workspace_id) as session:
        way = await entity_walks.shortest_path(
            session, source_id, target_id, edges, max_edges=max_edges, max_nodes=MAX_NODES
        )
        nodes = await entities.get_many(session, EntityScope(workspace_id, None), way.entity_ids)
        relations = await _show_relations(session, way.relations, {entity.id: entity.name for entity in nodes.values()})
    return way, [nodes[entity_id] for entity_id in way.entity_ids], relations


async def _show_relations(
    session: Session, relations: Iterable[EntityRelation], names: Mapping[UUID, str] | None = None
) -> list[ShownRelation]:
    """The relations whose ends are among `names`, or (None) exist."""
    edges = list(relations)
    if not edges:
        return []
    if names is None:
        ends = {end for relation in edges for end in (relation.source_id, relation.target_id)}
        names = await entities.names(session, ends)
    edges = [relation for relation in edges if {relation.source_id, relation.target_id} <= names.keys()]
    evidence = await entity_relations.evidence(session, [relation.id for relation in edges], each=MAX_EVIDENCE)
    return [
        ShownRelation(relation, names[relation.source_id], names[relation.target_id], evidence.get(relation.id, []))
        for relation in edges
    ]
