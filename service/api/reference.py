"""What is configured, what is stored, and which words does the service use? Configuration, statistics, reference."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from service.api import errors
from service.api.auth import Admin, CallerOf, Reader
from service.api.deps import ResourcesOf, ScopeOf
from service.api.wire import Reply
from service.db import stats
from service.domain.kinds import TYPICAL_IMPORTANCE, MemoryType
from service.domain.relation import RelationType
from service.language import relation_labels

router = APIRouter(prefix="/v1", tags=["reference"])


class ConfigOut(Reply):
    """The settings in force in the caller's workspace, secrets masked (R15.01)."""

    version: str
    vector_store: dict[str, Any]
    llm: dict[str, Any]
    embedder: dict[str, Any]
    graph_store: dict[str, Any]
    history: dict[str, Any]
    custom_prompts: dict[str, Any]
    dedup: dict[str, Any]
    content: dict[str, Any]
    search: dict[str, Any]
    limits: dict[str, Any]
    working: dict[str, Any]
    jobs: dict[str, Any]
    service: dict[str, Any] = Field(description="Everything that belongs to none of the above")


class StatsOut(Reply):
    """Counts of the workspace (R15.03)."""

    name: str = Field(examples=["memories"])
    count: int
    archived: int
    pending_embeddings: int
    vectors: int
    dimension: int
    embedder: str
    conversations: int
    entities: int


class CategoryOut(Reply):
    category: str
    count: int


class CategoriesOut(Reply):
    """Most used first (R4.14)."""

    results: list[CategoryOut]
    next_cursor: str | None = None


class TypeOut(Reply):
    """`typical_importance`: guidance for people and for the offline rating, never enforced (R1.06)."""

    type: MemoryType
    meaning: str
    typical_importance: tuple[float, float]


class TypesOut(Reply):
    results: list[TypeOut]
    next_cursor: str | None = None


class RelationTypesOut(Reply):
    """`entities`: the normalised type, and labels that are taken as it."""

    memories: list[RelationType]
    entities: dict[str, list[str]]


class ConventionOut(Reply):
    use: str
    tags: list[str]


class ConventionsOut(Reply):
    """Suggestions, not rules (R5.05); dates like 2025-01."""

    results: list[ConventionOut]
    next_cursor: str | None = None


MEANINGS = {
    MemoryType.DECISION: "A choice that was made.",
    MemoryType.PATTERN: "Behaviour or structure that recurs.",
    MemoryType.PREFERENCE: "What somebody likes or dislikes.",
    MemoryType.STYLE: "How somebody writes, communicates or formats.",
    MemoryType.HABIT: "A routine.",
    MemoryType.INSIGHT: "Something learned or discovered.",
    MemoryType.CONTEXT: "Circumstances, and whatever fits nothing else.",
}

CONVENTIONS = (
    ("decision", ["<project>", "<platform>", "<date>", "decision"]),
    ("bug fix", ["<project>", "<platform>", "<date>", "bug-fix", "<component>"]),
    ("pattern", ["<project>", "<platform>", "<date>", "pattern", "<component>"]),
    ("user preference", ["preference", "<platform>", "<date>", "<domain>"]),
    ("personal note", ["personal", "<date>", "<category>"]),
)


@router.get(
    "/config",
    operation_id="get_config",
    summary="The settings in force",
    response_model=ConfigOut,
    responses=errors.documented(401, 403),
)
async def get_config(who: Admin, res: ResourcesOf) -> ConfigOut:
    settings = res.settings
    shown = settings.model_dump(mode="json")  # pydantic masks secrets
    rest = {name: shown[name] for name in shown if name not in ("version", "custom_prompts")}

    def pick(*names: str) -> dict[str, Any]:
        return {name: rest.pop(name) for name in names}

    def all_of(*beginnings: str) -> dict[str, Any]:
        return pick(*(name for name in list(rest) if name.startswith(beginnings)))

    return ConfigOut(
        version=settings.version,
        vector_store={
            "provider": "pgvector",
            "collection_name": "memories",
            "dimension": res.embedder.dimension,
            **pick("vector_partitions", "exact_scope_rows", "signs_scope_rows", "database_url", "pool_size"),
        },
        llm={
            "active": res.llm.model if res.llm else None,
            **all_of("llm_"),
            **pick("extraction_model", "decision_model", "classifier_model", "classifier_use_llm"),
        },
        embedder={
            "active": res.embedder.model,
            "dimensions": res.embedder.dimension,
            **all_of("embedder_", "embedding_"),
        },
        graph_store={
            "provider": "postgres",
            **pick("graph_enabled", "graph_max_nodes", "similar_to_min", "similar_to_k", "occurred_before_window_s"),
        },
        history=pick(
            *("audit_level", "audit_retention_days", "history_retention_days"),
            *("invocation_retention_days", "memory_retention_days"),
        ),
        custom_prompts=shown["custom_prompts"],
        dedup={**all_of("dedup_"), **pick("contradiction_policy")},
        content={**all_of("content_"), **pick("timezone", "temporal_timeout_ms")},
        search={
            **all_of("search_", "rerank_", "recall_"),
            **pick("expired_factor", "recency_half_life_days", "reinforce"),
        },
        limits=pick("max_body_bytes", "max_page_size", "batch_max_items", "messages_max_items", "request_deadline_s"),
        working=all_of("working_"),
        jobs={**all_of("worker_", "job_"), **pick("embed_batch")},
        service=rest,
    )


@router.get(
    "/stats",
    operation_id="get_stats",
    summary="How much is stored",
    response_model=StatsOut,
    responses=errors.documented(401, 403, 503),
)
async def get_stats(who: Reader, res: ResourcesOf) -> StatsOut:
    async with res.db.read(who.workspace_id) as session:
        found = await stats.of_workspace(session, who.workspace_id)
    return StatsOut(
        name="memories",
        count=found.memories,
        archived=found.archived,
        pending_embeddings=found.pending_embeddings,
        vectors=found.vectors,
        dimension=res.embedder.dimension,
        embedder=res.embedder.model,
        conversations=found.conversations,
        entities=found.entities,
    )


@router.get(
    "/stats/categories",
    operation_id="get_category_stats",
    summary="Categories of a scope and how often they are used",
    response_model=CategoriesOut,
    responses=errors.documented(400, 401, 403, 503),
)
async def get_category_stats(who: Reader, scope: ScopeOf, res: ResourcesOf) -> CategoriesOut:
    async with res.db.read(who.workspace_id) as session:
        found = await stats.categories(session, scope, limit=100)
    return CategoriesOut(results=[CategoryOut(category=name, count=count) for name, count in found])


@router.get(
    "/reference/types",
    operation_id="get_memory_types",
    summary="The seven memory types",
    response_model=TypesOut,
    responses=errors.documented(401),
)
async def get_memory_types(who: CallerOf) -> TypesOut:
    return TypesOut(
        results=[
            TypeOut(type=kind, meaning=MEANINGS[kind], typical_importance=TYPICAL_IMPORTANCE[kind])
            for kind in MemoryType
        ]
    )


@router.get(
    "/reference/relation-types",
    operation_id="get_relation_types",
    summary="How memories and entities can stand to each other",
    response_model=RelationTypesOut,
    responses=errors.documented(401),
)
async def get_relation_types(who: CallerOf) -> RelationTypesOut:
    """Memories have these types only; entities take any label, these spellings of it mean the same (R8.07)."""
    return RelationTypesOut(
        memories=list(RelationType),
        entities={kind: sorted(labels) for kind, labels in relation_labels.SPELLINGS.items()},
    )


@router.get(
    "/reference/tag-conventions",
    operation_id="get_tag_conventions",
    summary="How tags are best chosen",
    response_model=ConventionsOut,
    responses=errors.documented(401),
)
async def get_tag_conventions(who: CallerOf) -> ConventionsOut:
    return ConventionsOut(results=[ConventionOut(use=use, tags=tags) for use, tags in CONVENTIONS])
