"""Routes for configuration, statistics and reference lists."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from service import __version__
from service.app import statistics
from service.app.statistics import ModelBudgetItem
from service.domain import sizes
from service.domain.access import Right
from service.domain.kinds import TYPICAL_IMPORTANCE, MemoryType
from service.domain.relation import RelationType
from service.http.deps import Admin, CallerOf, Reader, ReadScopeOf, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.schemas import OnePage, ResponseModel
from service.language import relations

router = APIRouter(prefix="/v1", tags=["reference"], route_class=JsonRoute)


class ConfigResponse(ResponseModel):
    """The settings in force in the caller's workspace, secrets masked."""

    version: str = Field(description="Version of this service")
    vector_store: dict[str, Any] = Field(
        description="The database, the dimension of vectors, and up to how many rows a scope is searched exactly"
    )
    llm: dict[str, Any] = Field(description="The language model; `active` is null without one")
    embedder: dict[str, Any] = Field(description="The embedder; `active` is the model in use")
    graph_store: dict[str, Any] = Field(description="Where relations are stored, and whether jobs create them")
    history: dict[str, Any] = Field(description="`audit_level`, and the retention in days of audit and history")
    custom_prompts: dict[str, Any] = Field(description="Your prompts that replace the built-in ones, by name")
    memories: dict[str, Any] = Field(
        description="Duplicates, contradictions, limits of a text in characters, time zone, retention"
    )
    search: dict[str, Any] = Field(description="Techniques and reranker of searches")
    limits: dict[str, Any] = Field(description="Per request: bytes, page size, items, messages")
    jobs: dict[str, Any] = Field(description="The worker, the intervals of jobs, and when memories count as unused")
    service: dict[str, Any] = Field(description="Address, access and limits of the service, and its logs")


class StatsResponse(ResponseModel):
    """Counts of the workspace."""

    name: str = Field(description="Always memories", examples=["memories"])
    count: int = Field(description="Memories, including archived ones")
    archived: int = Field(description="Archived memories")
    pending_embeddings: int = Field(description="Memories whose vector is not computed yet")
    vectors: int = Field(description="Vectors of memories")
    dimension: int = Field(description="Dimension of a vector")
    embedder: str = Field(description="The model in use")
    conversations: int = Field(description="Conversations, including archived ones")
    entities: int = Field(description="Entities of all users")
    dead_jobs: int = Field(description="Jobs that failed permanently and wait for a person (`GET /v1/jobs`)")
    model_budget: ModelBudgetItem | None = Field(
        description="Use of the language model today; null without one, and for keys restricted to a scope"
    )


class CategoryItem(ResponseModel):
    """A category and how often it is used."""

    category: str = Field(description="Lower case")
    count: int = Field(description="Number of live memories of the scope in it")


class CategoryStatsResponse(ResponseModel):
    """Most used first."""

    results: list[CategoryItem] = Field(description="At most 100")
    next_cursor: OnePage = None


class MemoryTypeItem(ResponseModel):
    """A type of memory. Its importance is guidance, used by the offline rating; it is not enforced."""

    type: MemoryType = Field(description="Its name, case-sensitive")
    meaning: str = Field(description="What is stored under it")
    typical_importance: list[float] = Field(min_length=2, max_length=2, description="Lowest and highest, 0..1")


class MemoryTypesResponse(ResponseModel):
    """The seven types of memory."""

    results: list[MemoryTypeItem] = Field(description="All seven types")
    next_cursor: OnePage = None


class RelationTypesResponse(ResponseModel):
    """Types of relations between memories and between entities."""

    memories: list[RelationType] = Field(description="All types of relations between memories")
    entities: dict[str, list[str]] = Field(description="Labels by the type they are normalised to")


class TagConventionItem(ResponseModel):
    """Suggested tags for one use."""

    use: str = Field(description="The kind of memory")
    tags: list[str] = Field(description="Suggested tags; replace those in <>")


class TagConventionsResponse(ResponseModel):
    """Suggestions, not rules; write dates like 2025-01."""

    results: list[TagConventionItem] = Field(description="One per use")
    next_cursor: OnePage = None


class GuidanceItem(ResponseModel):
    """One kind of content, and whether it belongs in memory."""

    content: str = Field(description="The kind of content")
    store: bool = Field(description="Whether to store it")
    typical_importance: list[float] | None = Field(description="Lowest and highest, 0..1; null if not to be stored")
    why: str = Field(description="The reason, or how to write it")


class GuidanceResponse(ResponseModel):
    """Advice for agents and people; only the redaction of secrets is enforced."""

    results: list[GuidanceItem] = Field(description="First what to store, then what never to store")
    next_cursor: OnePage = None


WHERE = frozenset({"host", "url", "webhook_networks", "trusted_proxies", "cors_origins"})
"""Settings that reveal where the service runs and what it connects to, in addition to URLs, folders and files."""

MEANINGS = {
    MemoryType.DECISION: "A choice and its reasons.",
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

GUIDANCE = (
    ("A correction by the user", [0.9, 0.9], "Repeating a mistake costs trust: store what is right, and why."),
    ("An architecture decision with its reasons", [0.9, 0.9], "Name the alternatives that were rejected."),
    ("A bug fix with its root cause", [0.7, 0.8], "Symptom, cause and cure in one sentence each."),
    ("A pattern that was found", [0.7, 0.9], "Say where it holds and where it does not."),
    ("A preference or habit of a person", [0.6, 0.8], "Name the person; one preference per memory."),
    ("A fact about a person, project or appointment", [0.5, 0.8], "With absolute dates, names and figures."),
    ("Circumstances that may matter later", [0.3, 0.5], "Set expires_at if they will pass."),
    ("A trivial edit", None, "A typo, whitespace or a rename says nothing later."),
    ("What is documented elsewhere", None, "It goes out of date here; store where to find it."),
    ("Temporary file content or debug output", None, "It is long, soon outdated, and hides what matters."),
    ("Credentials and API keys", None, "They belong in a secret store; recognised ones are redacted."),
    ("A question, or a request to the assistant", None, "It is not knowledge; store the answer, if it lasts."),
    ("Words without context, such as 'Fixed typo' or 'Changed config'", None, "Say what, where and why."),
    (
        "A type prefix in the text, such as '[DECISION]'",
        None,
        "Send the type as `type`: the prefix only dilutes the text.",
    ),
)


@router.get("/config", summary="Get the settings in force")
async def get_config(caller: Admin, res: ResourcesOf) -> ConfigResponse:
    """The service's settings with the workspace's overrides, secrets masked. Addresses, networks and folders are null
    unless the key has the right `operator`."""
    shown = res.settings.model_dump(mode="json", by_alias=True)  # pydantic masks secrets
    if not caller.may(Right.OPERATOR):
        for group in shown.values():
            group |= dict.fromkeys(name for name in group if name in WHERE or name.endswith(("_url", "_dir", "_file")))
    dimension, jobs = res.embedder.dimension, shown["jobs"]
    scopes = {"exact_scope_rows": sizes.EXACT_ROWS, "binary_scope_rows": sizes.BINARY_ROWS}
    return ConfigResponse(
        version=__version__,
        vector_store=shown["database"]
        | scopes
        | {"provider": "pgvector", "collection_name": "memories", "dimension": dimension},
        custom_prompts=shown["llm"].pop("custom_prompts"),
        llm=shown["llm"] | {"active": res.llm.model if res.llm else None},
        embedder=shown["embedder"] | {"active": res.embedder.model, "dimensions": dimension},
        graph_store={"provider": "postgres", "graph_enabled": jobs.pop("graph_enabled")},
        history=shown["history"],
        memories=shown["memories"],
        search=shown["search"],
        limits={
            "max_body_bytes": sizes.MAX_BODY_BYTES,
            "max_page_size": sizes.MAX_ITEMS,
            "batch_max_items": sizes.MAX_BATCH_ITEMS,
            "messages_max_items": sizes.MESSAGES_AT_ONCE,
        },
        jobs=jobs,
        service=shown["server"] | shown["client"],
    )


@router.get("/stats", summary="Count what is stored")
async def get_stats(caller: Reader, res: ResourcesOf) -> StatsResponse:
    """Exact counts over the whole workspace, all users included."""
    counts, budget = await statistics.count_workspace(caller, res)
    return StatsResponse.of(
        counts,
        name="memories",
        count=counts.memories,
        model_budget=budget,
        dimension=res.embedder.dimension,
        embedder=res.embedder.model,
    )


@router.get("/stats/categories", summary="List the categories of a scope by use")
async def get_category_stats(caller: Reader, scope: ReadScopeOf, res: ResourcesOf) -> CategoryStatsResponse:
    """The 100 most used categories of memories that are not archived."""
    counts = await statistics.count_categories(scope, res)
    return CategoryStatsResponse(results=[CategoryItem(category=name, count=count) for name, count in counts])


@router.get("/reference/types", summary="List the memory types")
async def get_memory_types(caller: CallerOf) -> MemoryTypesResponse:
    """What each type is for, and its typical importance."""
    return MemoryTypesResponse(
        results=[
            MemoryTypeItem(type=kind, meaning=MEANINGS[kind], typical_importance=list(TYPICAL_IMPORTANCE[kind]))
            for kind in MemoryType
        ]
    )


@router.get("/reference/relation-types", summary="List the relation types of memories and entities")
async def get_relation_types(caller: CallerOf) -> RelationTypesResponse:
    """Memories accept only these types. Entities accept any label; those listed are normalised to one type."""
    return RelationTypesResponse(
        memories=list(RelationType),
        entities={kind: sorted(labels) for kind, labels in relations.SPELLINGS.items()},
    )


@router.get("/reference/tag-conventions", summary="List suggested tags")
async def get_tag_conventions(caller: CallerOf) -> TagConventionsResponse:
    """Any tag is accepted; these are suggestions."""
    return TagConventionsResponse(results=[TagConventionItem(use=use, tags=tags) for use, tags in CONVENTIONS])


@router.get("/reference/guidance", summary="Get advice on what to store")
async def get_guidance(caller: CallerOf) -> GuidanceResponse:
    """Kinds of content with their typical importance. Store corrections by the user (0.9), architecture decisions with
    reasons (0.9), bug fixes with their root cause (0.7 to 0.8), patterns (0.7 to 0.9). Never store trivial edits, what
    is documented elsewhere, temporary files or debug output, credentials."""
    return GuidanceResponse(
        results=[
            GuidanceItem(content=content, store=typical is not None, typical_importance=typical, why=why)
            for content, typical, why in GUIDANCE
        ]
    )
