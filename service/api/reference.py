"""What is configured, what is stored, and which words does the service use? Configuration, statistics, reference."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from service.api import errors
from service.api.deps import Admin, CallerOf, Reader, ResourcesOf, ScopeOf
from service.api.schemas import OnePage, ResponseModel
from service.db.memories import stats
from service.domain.kinds import TYPICAL_IMPORTANCE, MemoryType
from service.domain.relation import RelationType
from service.language import relation_labels

router = APIRouter(prefix="/v1", tags=["reference"])


class ConfigResponse(ResponseModel):  # R15.01
    """The settings in force in the caller's workspace, secrets masked."""

    version: str = Field(description="Of this service")
    vector_store: dict[str, Any] = Field(
        description="Where vectors are kept, how many numbers each has, and up to how many rows a scope is searched "
        "exactly"
    )
    llm: dict[str, Any] = Field(description="The language model; `active` null: there is none")
    embedder: dict[str, Any] = Field(description="The embedder; `active` is the model in use")
    graph_store: dict[str, Any] = Field(description="Whether relations are drawn, and the limits of walks")
    history: dict[str, Any] = Field(
        description="`audit_level`, and for how many days audit, history, uses of tools and memories are kept"
    )
    custom_prompts: dict[str, Any] = Field(description="Prompts of your own instead of the service's, by name")
    dedup: dict[str, Any] = Field(
        description="From which similarity on a text is a duplicate, and what happens to what contradicts"
    )
    content: dict[str, Any] = Field(
        description="Limits of a text in characters, time zone, and the time given to reading dates"
    )
    search: dict[str, Any] = Field(description="What ranks, reranks and fills a recall")
    limits: dict[str, Any] = Field(description="Of one request: bytes, page size, items, messages, seconds")
    working: dict[str, Any] = Field(description="Of working memory: seconds held, and how much a session keeps")
    jobs: dict[str, Any] = Field(description="The worker's pace, leases, attempts and back-off")
    service: dict[str, Any] = Field(description="Everything that belongs to none of the above")


class StatsResponse(ResponseModel):  # R15.03
    """Counts of the workspace."""

    name: str = Field(description="Always memories", examples=["memories"])
    count: int = Field(description="Memories, archived ones included, from 0")
    archived: int = Field(description="Archived memories, from 0")
    pending_embeddings: int = Field(description="Memories whose vector is still to be made, from 0")
    vectors: int = Field(description="Vectors of memories' texts, from 0")
    dimension: int = Field(description="Numbers of one vector")
    embedder: str = Field(description="The model in use")
    conversations: int = Field(description="Conversations, archived ones included, from 0")
    entities: int = Field(description="Entities of all users together, from 0")


class CategoryItem(ResponseModel):
    """A category, and how often it is used."""

    category: str = Field(description="In lower case")
    count: int = Field(description="Live memories of the scope that bear it, from 1")


class CategoryStatsResponse(ResponseModel):  # R4.14
    """Most used first."""

    results: list[CategoryItem] = Field(description="The first 100")
    next_cursor: OnePage = None


class MemoryTypeItem(ResponseModel):
    """A kind of memory. Its importance is guidance for people and for the offline rating, never enforced."""

    type: MemoryType = Field(description="Its name, case-sensitive")
    meaning: str = Field(description="What is stored under it")
    typical_importance: tuple[float, float] = Field(description="From and to, 0..1")


class MemoryTypesResponse(ResponseModel):
    """The seven kinds of memory."""

    results: list[MemoryTypeItem] = Field(description="All seven")
    next_cursor: OnePage = None


class RelationTypesResponse(ResponseModel):
    """Types of edges and of relations."""

    memories: list[RelationType] = Field(description="All types that an edge between memories can have")
    entities: dict[str, list[str]] = Field(description="By normalised type, the labels that are taken as it")


class TagConventionItem(ResponseModel):
    """Tags for one use."""

    use: str = Field(description="What the memory is")
    tags: list[str] = Field(description="The tags it should bear, your own words for those in <>")


class TagConventionsResponse(ResponseModel):  # R5.05
    """Suggestions, not rules; dates like 2025-01."""

    results: list[TagConventionItem] = Field(description="One for each use")
    next_cursor: OnePage = None


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
    response_model=ConfigResponse,
    responses=errors.documented(401, 403),
)
async def get_config(who: Admin, res: ResourcesOf) -> ConfigResponse:
    """The service's with the workspace's own over them, secrets masked. Needs the right `admin`."""
    settings = res.settings
    shown = settings.model_dump(mode="json")  # pydantic masks secrets
    rest = {name: shown[name] for name in shown if name not in ("version", "custom_prompts")}

    def pick(*names: str) -> dict[str, Any]:
        return {name: rest.pop(name) for name in names}

    def all_of(*beginnings: str) -> dict[str, Any]:
        return pick(*(name for name in list(rest) if name.startswith(beginnings)))

    return ConfigResponse(
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
    response_model=StatsResponse,
    responses=errors.documented(401, 403, 503),
)
async def get_stats(who: Reader, res: ResourcesOf) -> StatsResponse:
    """Exact counts over the whole workspace, of every user."""
    async with res.db.read(who.workspace_id) as session:
        found = await stats.of_workspace(session, who.workspace_id)
    return StatsResponse(
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
    response_model=CategoryStatsResponse,
    responses=errors.documented(400, 401, 403, 503),
)
async def get_category_stats(who: Reader, scope: ScopeOf, res: ResourcesOf) -> CategoryStatsResponse:
    """The 100 most used, of memories that are not archived."""
    async with res.db.read(who.workspace_id) as session:
        found = await stats.categories(session, scope, limit=100)
    return CategoryStatsResponse(results=[CategoryItem(category=name, count=count) for name, count in found])


@router.get(
    "/reference/types",
    operation_id="get_memory_types",
    summary="The seven memory types",
    response_model=MemoryTypesResponse,
    responses=errors.documented(401),
)
async def get_memory_types(who: CallerOf) -> MemoryTypesResponse:
    """What each is for, and how important its memories usually are."""
    return MemoryTypesResponse(
        results=[
            MemoryTypeItem(type=kind, meaning=MEANINGS[kind], typical_importance=TYPICAL_IMPORTANCE[kind])
            for kind in MemoryType
        ]
    )


@router.get(
    "/reference/relation-types",
    operation_id="get_relation_types",
    summary="How memories and entities can stand to each other",
    response_model=RelationTypesResponse,
    responses=errors.documented(401),
)
async def get_relation_types(who: CallerOf) -> RelationTypesResponse:  # R8.07
    """Memories have these types only; entities take any label, these spellings of it mean the same."""
    return RelationTypesResponse(
        memories=list(RelationType),
        entities={kind: sorted(labels) for kind, labels in relation_labels.SPELLINGS.items()},
    )


@router.get(
    "/reference/tag-conventions",
    operation_id="get_tag_conventions",
    summary="How tags are best chosen",
    response_model=TagConventionsResponse,
    responses=errors.documented(401),
)
async def get_tag_conventions(who: CallerOf) -> TagConventionsResponse:
    """Suggestions: any tag is taken."""
    return TagConventionsResponse(results=[TagConventionItem(use=use, tags=tags) for use, tags in CONVENTIONS])
