"""AutoMem's recall, and what its clients read at the start of a session."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Request

from service.compat import automem_format
from service.compat.adapter_routes import AdapterRoute, read_numbered_page, whole_number
from service.compat.automem_scope import find_tagged, owner, read
from service.domain.access import Caller
from service.domain.errors import InvalidInput
from service.domain.memory import Hit
from service.domain.moments import elapsed_ms
from service.domain.query import SortOrder, Window
from service.domain.relation import ConnectedMemoryItem
from service.http import cursors, narrowing
from service.http.deps import Reader, ResourcesOf
from service.http.errors import AUTOMEM
from service.http.narrowing import NarrowingFields
from service.http.query_parameters import body_of
from service.http.schemas import iso
from service.runtime.resources import Resources
from service.search.routes.search import run_search
from service.search.routes.search_models import SearchRequest

router = APIRouter(prefix=AUTOMEM, route_class=AdapterRoute, include_in_schema=False)

MOST_RECALLED: Final = 100
MOST_QUERIES: Final = 10
MOST_EXPANDED: Final = 500
ANALYSED: Final = 1_000


@dataclass(slots=True)
class RecalledHits:
    """Collects the hits of several queries, each memory once, with its best score."""

    hits: dict[UUID, Hit] = field(default_factory=dict)
    items: dict[UUID, dict[str, Any]] = field(default_factory=dict)
    repeated: int = 0
    window: Window = field(default_factory=Window)
    warnings: list[str] = field(default_factory=list)

    def add(self, hits: Sequence[Hit], match: str, connected: Mapping[UUID, Sequence[ConnectedMemoryItem]]) -> None:
        for hit in hits:
            known = self.hits.get(hit.memory.id)
            self.repeated += known is not None
            if known is None or known.score < hit.score:
                self.hits[hit.memory.id] = hit
                relations = [automem_format.relation_item(memory) for memory in connected.get(hit.memory.id, ())]
                kind = "keyword" if match == "vector" and hit.similarity is None else match
                self.items[hit.memory.id] = automem_format.hit_item(hit, kind, relations)


@router.get("/recall")
async def recall(request: Request, caller: Reader, res: ResourcesOf) -> dict[str, Any]:
    """Ranks the memories as `POST /v1/memories/search` does. Parameters without a meaning in it
    (context, language, active_path, embedding, ...) are ignored."""
    began, asked = time.perf_counter(), request.query_params
    limit = whole_number(asked.get("limit"), "limit", default=5, most=MOST_RECALLED)
    offset = whole_number(asked.get("offset"), "offset", default=0, least=0, most=1_000 - MOST_RECALLED)
    query = (asked.get("query") or "").strip()
    queries = [each.strip() for each in asked.getlist("queries") if each.strip()]
    if len(queries) > MOST_QUERIES:
        raise InvalidInput(f"queries: at most {MOST_QUERIES} queries.", field="queries")
    state_mode, sort = _state_mode(asked), _sort(asked, has_query=bool(query or queries))
    given = _narrow(request, caller, state_mode, res)
    recalled = RecalledHits()
    for text in queries or [query]:
        if text or sort == "score":
            await _search(recalled, request, {**given, "query": text or None, "limit": limit + offset}, caller, res)
        else:
            await _list(recalled, request, given, sort, caller, res, limit=limit + offset)
    ordered = _sort_hits(list(recalled.hits.values()), sort)[offset:][:limit]
    results = [recalled.items[hit.memory.id] for hit in ordered]
    asks = bool(query or queries)
    pool = len(recalled.hits) if asks else None
    fills = asks and bool(given["tags"]) and len(results) < limit and automem_format.flag(asked.get("scope_fallback"))
    if fills:
        outside = {"tags": [], "exclude_tags": [*given["exclude_tags"], *given["tags"]]}
        room = {"query": query or queries[0], "limit": limit - len(results)}
        outsiders = RecalledHits()
        await _search(outsiders, request, {**given, **outside, **room}, caller, res)
        results += [{**item, "outside_tag_scope": True} for item in outsiders.items.values()]
    shown, cut = cursors.cut(results, limit)
    if cut:
        recalled.warnings.append(f"limit: the first {len(shown)} memories fill the answer.")
    expansion = await _expand(request, shown, caller, res)
    return {
        "status": "success",
        "query": query,
        "results": [*shown, *expansion],
        "count": len(shown) + len(expansion),
        "dedup_removed": recalled.repeated,
        "sort": sort,
        "state_mode": state_mode,
        "vector_search": {"enabled": True, "matched": any(hit.similarity is not None for hit in ordered)},
        "tag_mode": given["tag_mode"],
        "tag_match": given["tag_match"],
        **_echo(given, recalled.window, queries, offset),
        **({"tag_scope": {"filtered": True, "pool_size_hint": pool, "gated_low_evidence": 0}} if given["tags"] else {}),
        **({"scope_fallback": True} if fills else {}),
        **({"expansion": _expansion(shown, expansion, asked)} if _expands(asked) else {}),
        "warnings": list(dict.fromkeys(recalled.warnings)),
        "query_time_ms": elapsed_ms(began),
    }


async def _search(
    recalled: RecalledHits, request: Request, given: Mapping[str, Any], caller: Caller, res: Resources
) -> None:
    body = body_of(SearchRequest, {**given, "connected": True, "turns": False, "detail": "full"})
    asked, result = await run_search(request, body, caller, res, may_list=True)
    match = "vector" if body.query else "tags" if body.tags else "trending"
    recalled.add(result.hits, match, result.connected)
    recalled.window = asked.window
    recalled.warnings += result.warnings


async def _list(
    recalled: RecalledHits,
    request: Request,
    given: Mapping[str, Any],
    sort: str,
    caller: Caller,
    res: Resources,
    *,
    limit: int,
) -> None:
    """Lists memories without a query, in the order of time."""
    body = body_of(NarrowingFields, {name: each for name, each in given.items() if name not in OF_A_SEARCH})
    order = SortOrder(_column(sort), ascending=sort.endswith("_asc"))
    page = await read_numbered_page(request, body, caller, res, order, skip=0, limit=limit, may_cut=True)
    recalled.add([Hit(memory, memory.importance.value, None) for memory in page.memories], "trending", {})
    recalled.window, _ = await narrowing.window(body, res)


OF_A_SEARCH: Final = frozenset({"prefer_tags", "min_score", "validity"})


def _state_mode(asked: Mapping[str, str]) -> str:
    mode = (asked.get("state_mode") or "current").strip().lower()
    if mode not in ("current", "history"):
        raise InvalidInput("state_mode: must be current or history.", field="state_mode")
    if asked.get("current_only") is not None:
        return "current" if automem_format.flag(asked["current_only"]) else "history"
    return mode


def _sort(asked: Mapping[str, str], *, has_query: bool) -> str:
    """The order of the hits: with a time alone the newest come first, as in AutoMem."""
    sort = (asked.get("sort") or asked.get("order_by") or "").strip().lower()
    if sort not in automem_format.SORTS:
        sort = "score"
    return "time_desc" if sort == "score" and _is_timed(asked) and not has_query else sort


def _is_timed(asked: Mapping[str, str]) -> bool:
    return any(asked.get(name) for name in ("start", "end", "time_query", "time"))


def _narrow(request: Request, caller: Caller, state_mode: str, res: Resources) -> dict[str, Any]:
    """The fields of a search for those of a recall."""
    asked = request.query_params
    said_so = asked.get("state_mode") or asked.get("current_only")
    # a recall with a time shows what held then
    holds = state_mode == "current" and bool(said_so or not _is_timed(asked))
    given: dict[str, Any] = {
        **owner(caller),
        "tags": automem_format.tags_in(asked.getlist("tags")),
        "exclude_tags": automem_format.tags_in(asked.getlist("exclude_tags")),
        "prefer_tags": automem_format.tags_in(asked.getlist("context_tags")),
        "tag_mode": "all" if (asked.get("tag_mode") or "").strip().lower() == "all" else "any",
        "tag_match": "exact" if (asked.get("tag_match") or "").strip().lower() == "exact" else "prefix",
        "validity": "exclude" if holds else "ignore",
        "include_archived": state_mode == "history",
    }
    given |= {name: asked[name] for name in ("start", "end") if asked.get(name)}
    if not given.keys() & {"start", "end"} and (time_query := asked.get("time_query") or asked.get("time")):
        given["time_query"] = time_query
    if asked.get("min_score"):
        given["min_score"] = automem_format.unit(asked["min_score"], "min_score")
    if holds:  # a recall with a time would also show what has ended
        given["filters"] = _holds(res.clock())
    return given


def _holds(now: datetime) -> dict[str, Any]:
    """A condition for memories that are valid now."""
    begun = [{"field": "t_valid", "operator": "eq", "value": None}]
    begun.append({"field": "t_valid", "operator": "lte", "value": iso(now)})
    open_end = [{"field": "t_invalid", "operator": "eq", "value": None}]
    open_end.append({"field": "t_invalid", "operator": "gt", "value": iso(now)})
    return {"AND": [{"OR": begun}, {"OR": open_end}]}


def _column(sort: str) -> Literal["updated_at", "timestamp"]:
    return "updated_at" if sort.startswith("updated") else "timestamp"


def _sort_hits(hits: list[Hit], sort: str) -> list[Hit]:
    if sort == "score":
        return sorted(hits, key=lambda hit: -hit.score)
    return sorted(hits, key=lambda hit: getattr(hit.memory, _column(sort)), reverse=sort.endswith("_desc"))


def _echo(given: Mapping[str, Any], window: Window, queries: Sequence[str], offset: int) -> dict[str, Any]:
    """The request fields that AutoMem echoes, if they were sent."""
    fields: dict[str, Any] = {name: given[name] for name in ("tags", "exclude_tags") if given[name]}
    if not window.is_open:
        times = {"start": window.start, "end": window.end}
        fields["time_window"] = {name: iso(moment) if moment else None for name, moment in times.items()}
    if queries:
        fields["queries"] = list(queries)
    if given.get("min_score"):
        fields["score_filter"] = {"min_score": given["min_score"]}
    return {**fields, **({"offset": offset} if offset else {})}


def _expands(asked: Mapping[str, str]) -> bool:
    return any(automem_format.flag(asked.get(name)) for name in ("expand_relations", "expand_associations", "expand"))


async def _expand(
    request: Request, results: Sequence[Mapping[str, Any]], caller: Caller, res: Resources
) -> list[dict[str, Any]]:
    """The memories connected to the hits, if requested; each once, below the hit that led to it."""
    asked = request.query_params
    if not _expands(asked):
        return []
    most = whole_number(asked.get("expansion_limit"), "expansion_limit", default=25, most=MOST_EXPANDED)
    strength = automem_format.unit(asked.get("expand_min_strength") or 0, "expand_min_strength")
    importance = automem_format.unit(asked.get("expand_min_importance") or 0, "expand_min_importance")
    seen = {result["id"] for result in results}
    ways: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    for result in results:
        for edge in result["relations"]:
            if edge["memory"]["id"] not in seen and edge["strength"] >= strength:
                ways.setdefault(edge["memory"]["id"], (result, edge))
    by_id = await read(caller, [UUID(way) for way in ways], res)
    items = []
    for connected_id, (result, edge) in ways.items():
        memory = by_id.get(UUID(connected_id))
        if memory is not None and memory.importance.value >= importance:
            by = {"type": edge["type"], "strength": edge["strength"], "from": result["id"]}
            items.append(
                automem_format.hit_item(Hit(memory, result["score"] * edge["strength"], None), "relation", [by])
            )
    return items[:most]


def _expansion(
    results: Sequence[Mapping[str, Any]], expansion: Sequence[Mapping[str, Any]], asked: Mapping[str, str]
) -> dict[str, Any]:
    limits = {name: int(asked[name]) for name in ("relation_limit", "expansion_limit") if asked.get(name, "").isdigit()}
    return {"enabled": True, "seed_count": len(results), "expanded_count": len(expansion), **limits}


@router.get("/startup-recall")
async def startup_recall(request: Request, caller: Reader, res: ResourcesOf) -> dict[str, Any]:
    """What AutoMem's assistants read first, selected by tags."""
    lessons = await _with_tags(request, caller, res, ["critical", "lesson", "ai-assistant"], 10)
    rules = await _with_tags(request, caller, res, ["system", "memory-recall"], 5)
    return {
        "status": "success",
        "critical_lessons": lessons,
        "system_rules": rules,
        "lesson_count": len(lessons),
        "has_critical": any(lesson["importance"] >= 0.9 for lesson in lessons),
        "summary": f"Recalled {len(lessons)} lesson(s) and {len(rules)} system rule(s)",
    }


async def _with_tags(
    request: Request, caller: Caller, res: Resources, wanted: list[str], limit: int
) -> list[dict[str, Any]]:
    order = SortOrder("importance")
    tagged = find_tagged(caller, wanted)
    page = await read_numbered_page(request, tagged, caller, res, order, skip=0, limit=limit, may_cut=True)
    return [automem_format.memory_item(memory) for memory in page.memories]


@router.get("/analyze")
async def analyze(request: Request, caller: Reader, res: ResourcesOf) -> dict[str, Any]:
    """Over the newest thousand memories, or as many of them as an answer has room for."""
    began = time.perf_counter()
    body = body_of(NarrowingFields, owner(caller))
    page = await read_numbered_page(request, body, caller, res, SortOrder(), skip=0, limit=ANALYSED, may_cut=True)
    return {"status": "success", "analytics": automem_format.analysis(page.memories), "elapsed_ms": elapsed_ms(began)}
