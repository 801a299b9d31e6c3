"""What goes in and comes out, as the OpenAPI document says it: an answer is the JSON, as it came."""

# Written by clients/python/generate.py: change that, or what it reads.

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NotRequired, Required, TypeAlias, TypedDict
from uuid import UUID

Moment: TypeAlias = str | datetime
Id: TypeAlias = str | UUID


class AcceptedResponse(TypedDict):
    """The request is stored and will be processed; `url` reports the progress."""

    operation_id: str
    status: Literal["queued"]
    url: str


Action: TypeAlias = Literal["ADD", "UPDATE", "DELETE", "NONE"]
"""What happens to a memory. A curator's DELETE archives it, NONE changes nothing."""


class BatchItemError(TypedDict):
    """The error of one batch item."""

    status: int
    code: str
    detail: str
    field: str | None


class ChangeItem(TypedDict):
    """One change."""

    id: str
    cursor: str
    event: ChangeKind
    memory_id: str
    changed_at: str
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    memory: ChangedMemory | None


ChangeKind: TypeAlias = Literal[
    "memory.added",
    "memory.updated",
    "memory.ended",
    "memory.archived",
    "memory.restored",
    "memory.deleted",
    "memory.erased",
]
"""Kind of change of a memory."""


class ChangedMemory(TypedDict):
    """A memory after a change, without the values that change by use, ageing and jobs."""

    id: str
    memory: str
    type: MemoryType
    fact_confidence: float | None
    importance: float
    tags: list[str]
    categories: list[str]
    metadata: dict[str, Any]
    timestamp: str
    t_valid: str | None
    t_invalid: str | None
    expires_at: str | None
    archived: bool
    version: int
    created_at: str
    updated_at: str
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    session_id: str | None


class ChangesPage(TypedDict):
    """Changes, in an order that is the same for all readers."""

    results: list[ChangeItem]
    next_cursor: str
    has_more: bool


ClassificationSource: TypeAlias = Literal["explicit", "regex", "llm", "rules", "default"]
"""How a type was determined: by the caller, patterns, a model, a guess of the rules, or not at all."""


class CompleteGoalRequest(TypedDict):
    """How a goal ended."""

    status: NotRequired[Literal["completed", "abandoned"]]
    result: NotRequired[str | None]


class ConnectedMemoryItem(TypedDict):
    """A memory that a hit is connected to."""

    id: str
    memory: str
    type: RelationType
    strength: float


class ContextMemoryItem(TypedDict):
    """A memory that is relevant to the conversation."""

    id: str
    memory: str
    type: MemoryType
    tags: list[str]
    categories: list[str]
    metadata: dict[str, Any]
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    role: str | None
    speaker: str | None
    conversation_id: str | None
    timestamp: str
    t_valid: str | None
    t_invalid: str | None
    may_be_outdated_by: list[str]
    archived: NotRequired[bool]
    score: float
    similarity: float | None


class ConversationContextResponse(TypedDict):
    """Turns and memories for a prompt, as lists and as text."""

    conversation_id: str
    turns: list[TurnListItem]
    memories: list[ContextMemoryItem]
    context: str
    tokens: int
    max_tokens: int
    warnings: list[str]


class ConversationDetailsResponse(TypedDict):
    """A conversation with a page of its turns, in order; pass `next_cursor` as `cursor` for the next page."""

    id: str
    external_id: str
    user_id: str | None
    agent_id: str | None
    run_id: str
    channel: str
    title: str | None
    started_at: str
    turn_count: int
    next_index: int
    consolidated: bool
    consolidated_at: str | None
    patterns_extracted: bool
    archived: bool
    metadata: dict[str, Any]
    version: int
    created_at: str
    updated_at: str
    turns: list[TurnResponse]
    next_cursor: str | None


class ConversationPage(TypedDict):
    """Newest first."""

    results: list[ConversationResponse]
    next_cursor: str | None


class ConversationResponse(TypedDict):
    """A conversation without its turns."""

    id: str
    external_id: str
    user_id: str | None
    agent_id: str | None
    run_id: str
    channel: str
    title: str | None
    started_at: str
    turn_count: int
    next_index: int
    consolidated: bool
    consolidated_at: str | None
    patterns_extracted: bool
    archived: bool
    metadata: dict[str, Any]
    version: int
    created_at: str
    updated_at: str


class CreateConversationRequest(TypedDict):
    """A conversation to open, named by `external_id` or its alias `run_id`; by default a name is generated."""

    user_id: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    run_id: NotRequired[str | None]
    channel: NotRequired[str | None]
    external_id: NotRequired[str | None]
    title: NotRequired[str | None]
    started_at: NotRequired[Moment | None]
    metadata: NotRequired[dict[str, Any]]


class CreateGoalRequest(TypedDict):
    """At least one of user_id, agent_id, run_id."""

    user_id: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    run_id: NotRequired[str | None]
    channel: NotRequired[str | None]
    description: str
    priority: NotRequired[int]
    deadline: NotRequired[Moment | None]
    parent_id: NotRequired[Id | None]
    blocked_by: NotRequired[list[Id]]
    memory_ids: NotRequired[list[Id]]


class DecisionEvidence(TypedDict):
    """How a similar memory was decided about, and why."""

    source: str
    model: str
    verdict: str
    reason: str
    rejected: bool


class DecisionPage(TypedDict):
    """Oldest first."""

    results: list[DecisionResponse]
    next_cursor: str | None


class DecisionResponse(TypedDict):
    """A decision with its evidence."""

    id: str
    memory_id: str | None
    event: Action | None
    source: str
    model: str
    prompt_sha256: str | None
    candidates: list[str]
    reply: str | None
    verdict: str
    reason: str
    rejected: bool
    state: Literal["applied", "rejected", "undone"]
    before: str | None
    after: str | None
    ruling_id: str | None
    history_id: str | None
    created_at: str
    undone_at: str | None


DedupAction: TypeAlias = Literal["duplicate_exact", "updated_existing", "stored_new"]
"""The outcome of deduplication."""


class DedupOutcome(TypedDict):
    """How the text compares with the memories of its scope."""

    action: DedupAction
    existing_id: str | None
    similarity: float | None


class DeletedCountResponse(TypedDict):
    """The number of deleted items."""

    deleted: int


class DeletedEntityResponse(TypedDict):
    """The deleted entity."""

    id: str
    deleted: bool


class DeletedMemoryResponse(TypedDict):
    """The outcome of deleting a memory."""

    id: str
    deleted: bool
    already_deleted: bool
    message: str


class DeletedTurnsResponse(TypedDict):
    """The outcome of deleting a conversation or a turn."""

    id: str
    deleted: bool
    already_deleted: bool
    turns: int
    memories: int


EmbeddingStatus: TypeAlias = Literal["stored", "queued", "placeholder"]
"""State of a memory's vector: stored, queued for a job, or replaced by a placeholder while the provider is down."""


class EntityPage(TypedDict):
    """Entities by name; pass `next_cursor` as `cursor` for the next page."""

    results: list[EntityResponse]
    next_cursor: str | None


class EntityRelationPage(TypedDict):
    """Strongest first. A name may mean several entities: one per user and channel."""

    entities: list[EntityResponse]
    results: list[EntityRelationResponse]
    next_cursor: str | None


class EntityRelationResponse(TypedDict):
    """A relation between entities, from source to target."""

    id: str
    source_id: str
    source: str
    type: str
    label: str
    target_id: str
    target: str
    strength: float
    confidence: float
    properties: dict[str, Any]
    t_valid: str | None
    t_invalid: str | None
    extracted_by: str
    memory_ids: list[str]
    created_at: str | None
    updated_at: str | None


class EntityResponse(TypedDict):
    """A person, place, organisation or other thing that memories mention."""

    id: str
    name: str
    type: str
    aliases: list[str]
    description: str | None
    properties: dict[str, Any]
    salience: float
    user_id: str | None
    channel: str
    mentions: int
    extracted_by: str
    first_seen: str
    last_accessed: str | None
    access_count: int
    version: int
    created_at: str
    updated_at: str


class EntitySearchHit(TypedDict):
    """An entity found by a search."""

    id: str
    name: str
    type: str
    aliases: list[str]
    description: str | None
    properties: dict[str, Any]
    salience: float
    user_id: str | None
    channel: str
    mentions: int
    extracted_by: str
    first_seen: str
    last_accessed: str | None
    access_count: int
    version: int
    created_at: str
    updated_at: str
    score: float
    similarity: float | None


class EntitySearchResponse(TypedDict):
    """Best first."""

    results: list[EntitySearchHit]
    next_cursor: str | None
    warnings: list[str]


ErrorCode: TypeAlias = Literal[
    "conflict",
    "deadline_exceeded",
    "embedding_error",
    "forbidden",
    "http_error",
    "idempotency_mismatch",
    "internal_error",
    "invalid_input",
    "llm_error",
    "method_not_allowed",
    "model_budget",
    "not_found",
    "outcome_unknown",
    "pii_rejected",
    "place_lost",
    "precondition_failed",
    "provider_error",
    "rate_limited",
    "request_timeout",
    "rerank_error",
    "schema_mismatch",
    "scope_error",
    "service_error",
    "store_unavailable",
    "too_large",
    "too_many_requests",
    "unauthenticated",
    "unavailable",
]
"""Error code."""


class ExplainMemoryResponse(TypedDict):
    """The origin of a memory. Without sources if it was stored directly or its turns have been deleted."""

    id: str
    memory: str | None
    sources: list[MemorySourceItem]
    decisions: list[DecisionResponse]
    changes: list[MemoryHistoryItem]
    next_cursor: str | None


class Factors(TypedDict):
    """Factors that multiply the sum. A strength of 0 is off; at 1 a factor ranges from 0 to 2, with 1 as neutral. The others are off at 1."""

    importance: NotRequired[float]
    recency: NotRequired[float]
    salience: NotRequired[float]
    current_factor: NotRequired[float]
    past_factor: NotRequired[float]
    expired_factor: NotRequired[float]


class FilterInput(TypedDict):
    """A condition (`field`, `operator`, `value`), or exactly one of `AND`, `OR`, `NOT` over further filters."""

    field: NotRequired[str | None]
    operator: NotRequired[FilterOperator | None]
    value: NotRequired[Any]
    AND: NotRequired[list[FilterInput] | None]
    OR: NotRequired[list[FilterInput] | None]
    NOT: NotRequired[FilterInput | None]


FilterOperator: TypeAlias = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains"]
"""How to compare a field with a value."""


class ForgetRequest(TypedDict):
    """What to forget: exactly one of `query` and `ids`, within a scope given by user_id, agent_id, run_id or shared."""

    user_id: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    run_id: NotRequired[str | None]
    channel: NotRequired[str | None]
    query: NotRequired[str | None]
    ids: NotRequired[list[Id] | None]
    shared: NotRequired[bool]
    session_id: NotRequired[str | None]
    dry_run: NotRequired[bool]
    purge: NotRequired[bool]


class ForgetResponse(TypedDict):
    """What matched and, unless it was a dry run, was removed."""

    dry_run: bool
    removed: bool
    matched: Literal["ids", "identifier", "name", "words", "meaning", "nothing"]
    explanation: str
    memories: list[ForgottenMemoryItem]
    turns: list[ForgottenSentenceItem]
    near_misses: list[ForgottenMemoryItem]
    receipt: PurgeReceiptResponse | None
    warnings: list[str]


class ForgottenMemoryItem(TypedDict):
    """A memory that matches, or is a near miss."""

    id: str
    memory: str | None
    reason: str
    remaining: str | None
    probability: float | None


class ForgottenSentenceItem(TypedDict):
    """A part of a turn that matches."""

    turn_id: str
    conversation_id: str
    turn_index: int
    start: int
    end: int
    text: str | None
    reason: str
    memory_id: str | None


Fusion: TypeAlias = Literal["weighted", "rrf"]
"""How to combine signals into a score."""


class GetMemoriesRequest(TypedDict):
    """Ids of memories to read."""

    ids: list[str]
    cursor: NotRequired[str | None]
    detail: NotRequired[Literal["lean", "full"]]


class GoalDetailsResponse(TypedDict):
    """A goal with its parent, its memories and at most 100 subgoals."""

    id: str
    description: str
    status: GoalStatus
    priority: int
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    parent_id: str | None
    blocked_by: list[str]
    deadline: str | None
    overdue: bool
    result: str | None
    version: int
    created_at: str
    updated_at: str
    completed_at: str | None
    parent: GoalResponse | None
    subgoals: list[GoalResponse]
    memory_ids: list[str]


class GoalPage(TypedDict):
    """Newest first; pass `next_cursor` as `cursor` for the next page."""

    results: list[GoalResponse]
    next_cursor: str | None


class GoalResponse(TypedDict):
    """A goal."""

    id: str
    description: str
    status: GoalStatus
    priority: int
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    parent_id: str | None
    blocked_by: list[str]
    deadline: str | None
    overdue: bool
    result: str | None
    version: int
    created_at: str
    updated_at: str
    completed_at: str | None


GoalStatus: TypeAlias = Literal["active", "completed", "abandoned", "blocked"]
"""State of a goal."""

ImportanceBand: TypeAlias = Literal["Critical", "Important", "Standard", "Minor", "Low"]
"""An importance as a word."""


class LaterStatementItem(TypedDict):
    """A later memory about the same thing."""

    id: str
    timestamp: str


LifecycleState: TypeAlias = Literal[
    "enrichment_queued", "active", "decaying", "enrichment_abandoned", "archived", "deleted"
]
"""State of a memory."""


class ListEntitiesRequest(TypedDict):
    """The scope whose entities to list. At least one of user_id, agent_id, run_id."""

    user_id: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    run_id: NotRequired[str | None]
    channel: NotRequired[str | None]
    type: NotRequired[str | None]
    conversation_id: NotRequired[str | None]
    limit: NotRequired[int]
    cursor: NotRequired[str | None]


class LlmUsage(TypedDict):
    """Model calls and tokens."""

    llm_calls: int
    prompt_tokens: int
    completion_tokens: int
    embedded_texts: int
    cached: int


class MemoriesByIdResponse(TypedDict):
    """The memories in the order of their ids."""

    results: list[MemoryItem]
    missing: list[str]
    next_cursor: str | None


class MemoryExplanation(TypedDict):
    """Why a memory was not found: unknown (no such memory in the scope), archived, expired, awaits_review, not_yet_valid, no_longer_valid, before_window, after_window, filtered_out (by tags, filters or other conditions), not_a_candidate (no search arm returned it), below_min_score, below_min_probability, below_limit, moved_down (by diversity or the reranker), and in addition no_vector_yet."""

    id: str
    found: bool
    place: int | None
    reasons: list[str]
    score: float | None
    explain: ScoreExplanation | None


class MemoryHistoryItem(TypedDict):
    """One change of a memory; its result was in force in the half-open [recorded_from, recorded_to)."""

    id: str
    memory_id: str
    event: Action
    old_memory: str | None
    new_memory: str | None
    is_deleted: bool
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    timestamp: str
    recorded_from: str
    recorded_to: str | None


class MemoryHistoryResponse(TypedDict):
    """Oldest first; available after the memory was deleted too."""

    results: list[MemoryHistoryItem]
    versions: list[MemoryVersionItem]
    next_cursor: str | None


class MemoryItem(TypedDict):
    """A memory in a list: what callers act on. With detail=full it has every field of a MemoryResponse."""

    id: str
    memory: str
    type: MemoryType
    tags: list[str]
    categories: list[str]
    metadata: dict[str, Any]
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    role: str | None
    speaker: str | None
    conversation_id: str | None
    timestamp: str
    t_valid: str | None
    t_invalid: str | None
    may_be_outdated_by: list[str]
    archived: NotRequired[bool]


class MemoryPage(TypedDict):
    """Newest first by default; for the next page send `next_cursor` as `cursor` with the same order."""

    results: list[MemoryItem]
    next_cursor: str | None
    total: TotalCount | None
    warnings: list[str]


class MemoryResponse(TypedDict):
    """A stored memory, with every field."""

    id: str
    memory: str
    type: MemoryType
    tags: list[str]
    categories: list[str]
    metadata: dict[str, Any]
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    role: str | None
    speaker: str | None
    conversation_id: str | None
    timestamp: str
    t_valid: str | None
    t_invalid: str | None
    may_be_outdated_by: list[str]
    archived: bool
    hash: str
    type_confidence: float
    classification_source: ClassificationSource
    fact_confidence: float | None
    current_confidence: float | None
    importance: float
    importance_level: int
    importance_band: ImportanceBand
    tag_prefixes: list[str]
    temporal: TemporalDetails
    entities: dict[str, list[str]]
    summary: str | None
    enriched: bool
    enriched_at: str | None
    enrichment_attempts: int
    lifecycle_state: LifecycleState
    deleted_at: str | None
    embedding: EmbeddingStatus
    shared: bool
    session_id: str | None
    turn_index: int | None
    relevance: float
    salience: float
    access_count: int
    last_accessed: str | None
    stale_at: str | None
    version: int
    created_at: str
    updated_at: str
    expires_at: str | None
    version_of: str | None


class MemorySearchHit(TypedDict):
    """A memory that matches, or a turn whose content is in no memory."""

    id: str
    memory: str
    type: MemoryType
    tags: list[str]
    categories: list[str]
    metadata: dict[str, Any]
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    role: str | None
    speaker: str | None
    conversation_id: str | None
    timestamp: str
    t_valid: str | None
    t_invalid: str | None
    may_be_outdated_by: list[str]
    archived: NotRequired[bool]
    source: Literal["memory", "turn"]
    score: float
    similarity: float | None
    answer_probability: float | None
    later: list[LaterStatementItem]
    turn_index: NotRequired[int]
    explain: NotRequired[ScoreExplanation]
    connected: NotRequired[list[ConnectedMemoryItem]]


class MemorySourceItem(TypedDict):
    """A turn that the memory was extracted from; the span is half-open, in characters."""

    conversation_id: str
    external_id: str
    turn_id: str
    turn_index: int
    role: str
    speaker: str | None
    timestamp: str
    start: int | None
    end: int | None
    quote: str


MemoryState: TypeAlias = Literal["live", "deleted"]
"""Whether to list existing or deleted memories."""

MemoryType: TypeAlias = Literal["Decision", "Pattern", "Preference", "Style", "Habit", "Insight", "Context"]
"""The seven types, case-sensitive."""


class MemoryVersionItem(TypedDict):
    """The text of a memory that was valid in the half-open [t_valid, t_invalid)."""

    id: str
    memory: str
    timestamp: str
    t_valid: str | None
    t_invalid: str | None
    is_current: bool


class MessageInput(TypedDict):
    """One message of a conversation. Parts without text are dropped with a warning."""

    role: str
    content: NotRequired[str | None]
    name: NotRequired[str | None]
    timestamp: NotRequired[Moment | None]


class OperationProgress(TypedDict):
    """The progress of a deletion."""

    done: int
    total: int


class OperationResponse(TypedDict):
    """The progress of a request that returned 202."""

    id: str
    kind: str
    status: OperationState
    progress: OperationProgress | None
    result: dict[str, Any] | None
    error: dict[str, Any] | None
    created_at: str
    finished_at: str | None


OperationState: TypeAlias = Literal["queued", "running", "done", "failed"]
"""State of an operation."""

OwnerKind: TypeAlias = Literal["user", "agent", "run"]
"""Kind of owner."""


class PatchConversationRequest(TypedDict):
    """Only the given fields change. `title` may be null; a null metadata value removes the key."""

    title: NotRequired[str | None]
    archived: NotRequired[bool | None]
    consolidated: NotRequired[bool | None]
    metadata: NotRequired[dict[str, Any]]


class PatchMemoryRequest(TypedDict):
    """Only the given fields change. `metadata` is merged key by key, null removes a key; `tags` replaces all tags."""

    content: NotRequired[str]
    tags: NotRequired[list[str] | None]
    importance: NotRequired[float]
    importance_level: NotRequired[int]
    type: NotRequired[MemoryType]
    type_confidence: NotRequired[float]
    fact_confidence: NotRequired[float]
    metadata: NotRequired[dict[str, Any] | None]
    t_valid: NotRequired[Moment | None]
    t_invalid: NotRequired[Moment | None]
    expires_at: NotRequired[Moment | None]
    timestamp: NotRequired[Moment]
    updated_at: NotRequired[Moment]
    last_accessed: NotRequired[Moment]
    allow_system_fields: NotRequired[bool]


class PiiSummary(TypedDict):
    """What was redacted in a text before it was stored."""

    redactions: list[RedactionCount]


class ProfileResponse(TypedDict):
    """The profile of a user."""

    user_id: str
    preferences: dict[str, Any]
    expertise_areas: list[Any]
    communication_style: dict[str, Any]
    metadata: dict[str, Any]
    version: int
    created_at: str
    updated_at: str


class PurgeReceiptResponse(TypedDict):
    """What a purge removed. The subject appears only as a digest."""

    purged: bool
    counts: dict[str, int]
    subject_sha256: str
    purged_at: str
    vacuum: Literal["queued", "not_permitted"]
    note: str


class PutUserProfileRequest(TypedDict):
    """The whole profile; omitted fields become empty."""

    preferences: NotRequired[dict[str, Any]]
    expertise_areas: NotRequired[list[str]]
    communication_style: NotRequired[dict[str, Any]]
    metadata: NotRequired[dict[str, Any]]


class RankingTuning(TypedDict):
    """Ranking options for this request; the defaults are the workspace's settings."""

    fusion: NotRequired[Fusion | None]
    weights: NotRequired[Weights | None]
    factors: NotRequired[Factors | None]
    techniques: NotRequired[Techniques | None]
    diversity: NotRequired[float | None]
    rerank: NotRequired[bool | None]


class RecallEntityItem(TypedDict):
    """An entity that the query names."""

    id: str
    name: str
    type: str
    aliases: list[str]
    description: str | None
    salience: float
    score: float


class RecallFactItem(TypedDict):
    """A memory that matches the query."""

    id: str
    memory: str
    type: MemoryType
    tags: list[str]
    categories: list[str]
    metadata: dict[str, Any]
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    role: str | None
    speaker: str | None
    conversation_id: str | None
    timestamp: str
    t_valid: str | None
    t_invalid: str | None
    may_be_outdated_by: list[str]
    archived: NotRequired[bool]
    score: float
    match: float
    similarity: float | None
    answer_probability: float | None


class RecallMetrics(TypedDict):
    """Size and time of the whole bundle and of its parts."""

    parts: dict[str, RecallPartMetrics]
    tokens: int
    max_tokens: int
    vector_path: VectorPath
    techniques: dict[str, TechniqueMetrics]
    ms: float


class RecallPartMetrics(TypedDict):
    """Size and time of one part."""

    found: int
    kept: int
    tokens: int
    ms: float


class RecallParts(TypedDict):
    """The parts to return; the others are not read."""

    turns: NotRequired[bool]
    facts: NotRequired[bool]
    entities: NotRequired[bool]
    strategies: NotRequired[bool]
    goals: NotRequired[bool]
    user_context: NotRequired[bool]


class RecallRelationItem(TypedDict):
    """A relation of one of these entities, from source to target."""

    source: str
    relation: str
    target: str
    strength: float


class RecallRequest(TypedDict):
    """A query, its scope, and how much to return."""

    user_id: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    run_id: NotRequired[str | None]
    channel: NotRequired[str | None]
    shared: NotRequired[bool]
    include_shared: NotRequired[bool | None]
    scope_match: NotRequired[ScopeMatch]
    query: str
    channels: NotRequired[list[str] | None]
    include: NotRequired[RecallParts]
    weights: NotRequired[RecallWeights | None]
    limit: NotRequired[int]
    max_tokens: NotRequired[int]
    per_conversation: NotRequired[int | None]
    around: NotRequired[int]
    time_window_hours: NotRequired[float | None]
    min_confidence: NotRequired[float | None]
    min_probability: NotRequired[float]
    valid_at: NotRequired[Moment | None]
    as_of: NotRequired[Moment | None]
    timezone: NotRequired[str | None]
    techniques: NotRequired[Techniques | None]
    diversity: NotRequired[float | None]
    reinforce: NotRequired[bool]
    detail: NotRequired[Literal["lean", "full"]]
    format: NotRequired[Literal["json", "markdown"]]


class RecallResponse(TypedDict):
    """What helps to answer the query, each part best first, cut to the token budget."""

    turns: list[RecallTurnItem]
    facts: list[RecallFactItem]
    entities: list[RecallEntityItem]
    graph: list[RecallRelationItem]
    strategies: list[StrategySearchHit]
    goals: list[GoalResponse]
    user_context: ProfileResponse | None
    answerable: bool | None
    answer_probability: float | None
    markdown: str | None
    metrics: RecallMetrics
    warnings: list[str]


class RecallTurnItem(TypedDict):
    """A turn that matches the query, or is next to one that does."""

    id: str
    conversation_id: str
    external_id: str | None
    turn_index: int
    role: str
    name: str | None
    content: str
    metadata: dict[str, Any]
    timestamp: str
    user_id: str | None
    agent_id: str | None
    channel: str
    score: float
    match: float
    answer_probability: float | None
    around: bool


class RecallWeights(TypedDict):
    """Weights of the parts that compete for the token budget; only proportions matter."""

    turns: NotRequired[float]
    facts: NotRequired[float]
    entities: NotRequired[float]
    strategies: NotRequired[float]
    recency: NotRequired[float]


class RedactionCount(TypedDict):
    """One kind of secret or personal data that was redacted."""

    label: str
    count: int


RelationType: TypeAlias = Literal[
    "OCCURRED_BEFORE",
    "SIMILAR_TO",
    "EXEMPLIFIES",
    "INVALIDATED_BY",
    "DERIVED_FROM",
    "PREFERS_OVER",
    "EVOLVED_INTO",
    "SUPERSEDES",
    "PROMOTED_FROM",
    "RELATES_TO",
    "LEADS_TO",
    "CONTRADICTS",
    "REINFORCES",
    "PART_OF",
    "MAY_OUTDATE",
]
"""Read from source to target: the copy PROMOTED_FROM the original, the new fact SUPERSEDES the old one, or MAY_OUTDATE it, if that is not certain."""


class ScopeDefaultsResponse(TypedDict):
    """The scope of requests that give none."""

    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str | None


class ScopeDeletionResponse(TypedDict):
    """The number of deleted memories or, for more than 1,000, the operation that continues. Statuses 200 and 202 have the same fields."""

    deleted: int
    status: Literal["done", "queued"]
    operation_id: str | None
    url: str | None


class ScopeItem(TypedDict):
    """One user, agent or run."""

    type: OwnerKind
    id: str
    memories: int
    archived: int
    first_used: str
    last_used: str


ScopeMatch: TypeAlias = Literal["all", "any"]
"""Whether memories must have all of several ids, or any."""

ScopeMode: TypeAlias = Literal["given", "exact"]
"""Whether memories may have ids that are not given."""


class ScopePage(TypedDict):
    """Users, then agents, then runs, each by name; pass `next_cursor` as `cursor` for the next page."""

    results: list[ScopeItem]
    next_cursor: str | None


class ScoreExplanation(TypedDict):
    """The score is the sum of value times weight over `terms`, multiplied by each of `factors`."""

    terms: dict[str, SignalTerm]
    factors: dict[str, float]


class SearchMetrics(TypedDict):
    """Techniques that a search used."""

    techniques: dict[str, TechniqueMetrics]


class SearchRequest(TypedDict):
    """A query in a scope. Without a query, but with tags, filters or other conditions, the most important matching memories are listed."""

    tuning: NotRequired[RankingTuning]
    reinforce: NotRequired[bool]
    explain: NotRequired[bool]
    explain_id: NotRequired[Id | None]
    user_id: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    run_id: NotRequired[str | None]
    channel: NotRequired[str | None]
    shared: NotRequired[bool]
    include_shared: NotRequired[bool | None]
    scope_match: NotRequired[ScopeMatch]
    channels: NotRequired[list[str] | None]
    scope_mode: NotRequired[ScopeMode]
    filters: NotRequired[FilterInput | None]
    tags: NotRequired[list[str]]
    tag_match: NotRequired[TagMatch]
    tag_mode: NotRequired[TagMode]
    exclude_tags: NotRequired[list[str]]
    categories: NotRequired[list[str]]
    types: NotRequired[list[MemoryType]]
    min_confidence: NotRequired[float | None]
    start: NotRequired[Moment | None]
    end: NotRequired[Moment | None]
    time_query: NotRequired[str | None]
    timestamp: NotRequired[Moment | None]
    timezone: NotRequired[str | None]
    valid_at: NotRequired[Moment | None]
    as_of: NotRequired[Moment | None]
    include_archived: NotRequired[bool]
    query: NotRequired[str | None]
    limit: NotRequired[int]
    prefer_tags: NotRequired[list[str]]
    min_score: NotRequired[float]
    min_probability: NotRequired[float]
    validity: NotRequired[Validity]
    connected: NotRequired[bool]
    turns: NotRequired[bool]
    detail: NotRequired[Literal["lean", "full"]]
    cursor: NotRequired[str | None]


class SearchResponse(TypedDict):
    """Hits, and how they were found."""

    results: list[MemorySearchHit]
    next_cursor: str | None
    answerable: bool | None
    answer_probability: float | None
    vector_path: VectorPath
    warnings: list[str]
    window: TimeInterval | None
    why: MemoryExplanation | None
    candidates: dict[str, int] | None
    metrics: SearchMetrics
    timings_ms: dict[str, float]


class SignalTerm(TypedDict):
    """A signal of a hit."""

    raw: float | None
    value: float
    weight: float


class StoreBatchItem(TypedDict):
    """The outcome of one item of a batch: its results or its error."""

    index: int
    status: int
    results: list[StoreOutcome]
    warnings: list[str]
    error: BatchItemError | None


class StoreBatchRequest(TypedDict):
    """Several texts, each stored in its own transaction."""

    items: list[StoreRequest]


class StoreBatchResponse(TypedDict):
    """One outcome per item."""

    results: list[StoreBatchItem]
    succeeded: int
    failed: int
    usage: LlmUsage


class StoreOutcome(TypedDict):
    """The outcome for one text; `event` is ADD, UPDATE or NONE."""

    event: Action
    id: str | None
    memory: str | None
    old_memory: str | None
    kept_as: str | None
    dedup: DedupOutcome
    decision: DecisionEvidence | None
    importance: float | None
    importance_level: int | None
    importance_band: ImportanceBand | None
    temporal: TemporalDetails | None
    categories: list[str]
    tags: list[str]
    tag_prefixes: list[str]
    type: MemoryType | None
    type_confidence: float | None
    classification_source: ClassificationSource | None
    pii: PiiSummary
    entities: dict[str, list[str]]
    embedding: EmbeddingStatus
    enrichment: Literal["queued", "none"]
    summarized: bool
    original_length: int | None
    summarized_length: int | None
    role: str | None
    conversation_id: str | None
    turn_index: int | None
    warnings: list[str]
    timings_ms: dict[str, float]


class StoreRequest(TypedDict):
    """Exactly one of `content` (one memory) and `messages` (a conversation), and whose it is: user_id, agent_id, run_id or shared."""

    user_id: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    run_id: NotRequired[str | None]
    channel: NotRequired[str | None]
    session_id: NotRequired[str | None]
    id: NotRequired[Id | None]
    type: NotRequired[MemoryType | None]
    type_confidence: NotRequired[float | None]
    importance: NotRequired[float | None]
    importance_level: NotRequired[int | None]
    tags: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]
    timestamp: NotRequired[Moment | None]
    timezone: NotRequired[str | None]
    t_valid: NotRequired[Moment | None]
    t_invalid: NotRequired[Moment | None]
    updated_at: NotRequired[Moment | None]
    last_accessed: NotRequired[Moment | None]
    allow_system_fields: NotRequired[bool]
    expires_at: NotRequired[Moment | None]
    embedding: NotRequired[list[float] | None]
    content: NotRequired[str | None]
    messages: NotRequired[list[MessageInput] | None]
    shared: NotRequired[bool]
    infer: NotRequired[bool]
    dedup: NotRequired[bool]
    dry_run: NotRequired[bool]
    use_llm: NotRequired[bool | None]
    summarise: NotRequired[bool]
    limits: NotRequired[Literal["open", "strict"] | None]
    prompt: NotRequired[str | None]
    filters: NotRequired[FilterInput | None]


class StoreResponse(TypedDict):
    """One result per text, in request order."""

    results: list[StoreOutcome]
    warnings: list[str]
    usage: LlmUsage
    timings_ms: dict[str, float]
    dry_run: bool


class StoreTurnRequest(TypedDict):
    """One turn. With `turn_index`, repeating it returns the stored turn (200); a different text is a conflict (409)."""

    role: str
    content: str
    name: NotRequired[str | None]
    turn_index: NotRequired[int | None]
    timestamp: NotRequired[Moment | None]
    token_count: NotRequired[int | None]
    model: NotRequired[str | None]
    metadata: NotRequired[dict[str, Any]]
    embedding: NotRequired[list[float] | None]


class StoreTurnResponse(TypedDict):
    """The stored turn, with what was redacted."""

    id: str
    conversation_id: str
    external_id: str | None
    turn_index: int
    role: str
    name: str | None
    content: str
    metadata: dict[str, Any]
    timestamp: str
    user_id: str | None
    agent_id: str | None
    channel: str
    next_turn_id: str | None
    withdrawn: list[WithdrawnSpanItem]
    content_hash: str
    token_count: int | None
    model: str | None
    run_id: str | None
    archived: bool
    embedding: Literal["stored", "queued"]
    created_at: str
    redactions: list[RedactionCount]
    warnings: list[str]


class StrategySearchHit(TypedDict):
    """A strategy that fits a task."""

    id: str
    description: str
    context_pattern: str | None
    task_type: str | None
    tool_sequence: list[str]
    success_count: int
    failure_count: int
    success_rate: float | None
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    version: int
    created_at: str
    last_used_at: str | None
    similarity: float | None
    smoothed_rate: float
    score: float


TagMatch: TypeAlias = Literal["prefix", "exact"]
"""Whether a tag also matches those below it."""

TagMode: TypeAlias = Literal["any", "all"]
"""Whether any of several tags is enough or all are required."""


class TechniqueMetrics(TypedDict):
    """Time and yield of a technique."""

    ms: float
    count: int
    note: str | None


class Techniques(TypedDict):
    """Techniques applied to a query. Those that need a language model fall back to rules, or are left out."""

    hybrid: NotRequired[bool]
    entity_centric: NotRequired[bool]
    query_expansion: NotRequired[bool]
    hyde: NotRequired[bool]
    self_query: NotRequired[bool]


class TemporalDetails(TypedDict):
    """The times that a text mentions, and how long it is valid."""

    type: TemporalType
    valid_until: str | None
    tag: TemporalTag | None
    mentions: list[TimeMention]


TemporalTag: TypeAlias = Literal["current", "past", "future"]
"""Whether a fact is about the present, the past or the future."""

TemporalType: TypeAlias = Literal["persistent", "temporal"]
"""Persistent facts have no expiry, temporal ones do."""


class TimeInterval(TypedDict):
    """A half-open interval of time."""

    start: str | None
    end: str | None


class TimeMention(TypedDict):
    """A temporal expression in the text."""

    text: str
    start: int
    end: int
    kind: str
    begins_at: str | None
    ends_at: str | None


class TotalCount(TypedDict):
    """Number of matches: exact up to 10,000, an estimate above."""

    value: int
    is_exact: bool


class TurnListItem(TypedDict):
    """A turn in a list: what callers act on. With detail=full it has every field of a TurnResponse."""

    id: str
    conversation_id: str
    external_id: str | None
    turn_index: int
    role: str
    name: str | None
    content: str
    metadata: dict[str, Any]
    timestamp: str
    user_id: str | None
    agent_id: str | None
    channel: str


class TurnResponse(TypedDict):
    """A turn as stored, with every field."""

    id: str
    conversation_id: str
    external_id: str | None
    turn_index: int
    role: str
    name: str | None
    content: str
    metadata: dict[str, Any]
    timestamp: str
    user_id: str | None
    agent_id: str | None
    channel: str
    next_turn_id: str | None
    withdrawn: list[WithdrawnSpanItem]
    content_hash: str
    token_count: int | None
    model: str | None
    run_id: str | None
    archived: bool
    embedding: Literal["stored", "queued"]
    created_at: str


class TurnSearchHit(TypedDict):
    """A turn found by a search."""

    id: str
    conversation_id: str
    external_id: str | None
    turn_index: int
    role: str
    name: str | None
    content: str
    metadata: dict[str, Any]
    timestamp: str
    user_id: str | None
    agent_id: str | None
    channel: str
    score: float
    similarity: float | None
    answer_probability: float | None


class TurnSearchResponse(TypedDict):
    """Best first."""

    results: list[TurnSearchHit]
    next_cursor: str | None
    answerable: bool | None
    answer_probability: float | None
    warnings: list[str]


class UndoDecisionResponse(TypedDict):
    """An undone decision, with those that were undone together with it."""

    id: str
    state: Literal["undone"]
    undone_at: str
    decisions: list[str]
    memories: list[MemoryResponse]
    removed: list[str]


class UpdateGoalRequest(TypedDict):
    """Only the given fields change. Lists replace the stored ones; deadline and parent_id may be null."""

    description: NotRequired[str]
    priority: NotRequired[int]
    deadline: NotRequired[Moment | None]
    parent_id: NotRequired[Id | None]
    blocked_by: NotRequired[list[Id]]
    memory_ids: NotRequired[list[Id]]
    status: NotRequired[Literal["active", "blocked"]]


class UpsertEntityRequest(TypedDict):
    """An entity, identified by its name. Omitted fields stay as they are; aliases and properties are added to the stored ones."""

    user_id: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    run_id: NotRequired[str | None]
    channel: NotRequired[str | None]
    name: str
    type: NotRequired[str | None]
    description: NotRequired[str | None]
    aliases: NotRequired[list[str]]
    properties: NotRequired[dict[str, Any]]
    salience: NotRequired[float | None]
    embedding: NotRequired[list[float] | None]


Validity: TypeAlias = Literal["exclude", "demote", "ignore"]
"""How to treat memories that are not valid now."""

VectorPath: TypeAlias = Literal["exact", "binary", "hnsw", "fallback", "none"]
"""How vectors were searched."""


class Weights(TypedDict):
    """Weights of the signals; only their proportions matter."""

    text_lexical: NotRequired[float]
    context_lexical: NotRequired[float]
    text_vector: NotRequired[float]
    context_vector: NotRequired[float]
    speaker: NotRequired[float]
    declarative: NotRequired[float]
    first_person: NotRequired[float]
    time: NotRequired[float]
    time_alone: NotRequired[float]
    dated: NotRequired[float]
    rare: NotRequired[float]
    rare_alone: NotRequired[float]
    tag: NotRequired[float]
    entity: NotRequired[float]
    entity_alone: NotRequired[float]
    goal: NotRequired[float]
    coverage: NotRequired[float]


class WhoAmIResponse(TypedDict):
    """The key or token of this request."""

    rights: list[str]
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channels: list[str] | None
    defaults: ScopeDefaultsResponse
    expires_at: str | None
    workspace_id: str
    api_key_id: str


class WithdrawnSpanItem(TypedDict):
    """A part of a turn that is no longer true."""

    start: int
    end: int
    reason: Literal["deleted", "expired", "updated", "superseded"]
    memory_id: str | None
    replaced_by: str | None


class CompleteGoalOptions(TypedDict, total=False):
    """Complete or abandon a goal"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    if_match: str | None
    """The ETag of GET, or *"""
    status: Literal["completed", "abandoned"]
    """abandoned: given up; default "completed"""
    result: str | None
    """How it ended"""


class CreateConversationOptions(TypedDict, total=False):
    """Open a conversation"""

    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope such as a project; default _global"""
    external_id: str | None
    """Your own name for it; opening it twice is allowed"""
    title: str | None
    """Title, for people"""
    started_at: Moment | None
    """Default now"""
    metadata: dict[str, Any]
    """Your own data"""


class CreateGoalOptions(TypedDict, total=False):
    """Set a goal"""

    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope such as a project; default _global"""
    priority: int
    """Greater comes first; default 0"""
    deadline: Moment | None
    """A goal still open after it is overdue; default: no deadline"""
    parent_id: Id | None
    """UUID of the parent goal; default: none"""
    blocked_by: list[Id]
    """Goals that must be completed first"""
    memory_ids: list[Id]
    """Memories to tie to it; they rank higher while it is active"""


class DeleteConversationOptions(TypedDict, total=False):
    """Delete a conversation with its turns"""

    facts: bool
    """Also delete the facts that were extracted from it alone; a purge always does"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    purge: bool
    """Also erase it from history, decisions, audit, jobs, responses and caches (right memory:purge)"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    if_match: str | None
    """The ETag of GET, or *"""


class DeleteEntityOptions(TypedDict, total=False):
    """Delete an entity"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope; reads also include _global, lists without it every channel"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    if_match: str | None
    """The ETag of GET, or *"""


class DeleteGoalOptions(TypedDict, total=False):
    """Delete a goal"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    if_match: str | None
    """The ETag of GET, or *"""


class DeleteMemoriesOptions(TypedDict, total=False):
    """Delete every memory of a scope"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope; reads also include _global, lists without it every channel"""
    shared: bool
    """Memories of the whole workspace instead (right memory:share)"""
    purge: bool
    """Also erase it from history, decisions, audit, jobs, responses and caches (right memory:purge)"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""


class DeleteMemoryOptions(TypedDict, total=False):
    """Delete a memory"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    purge: bool
    """Also erase it from history, decisions, audit, jobs, responses and caches (right memory:purge)"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    if_match: str | None
    """The ETag of GET, or *"""


class DeleteTurnOptions(TypedDict, total=False):
    """Delete a turn"""

    facts: bool
    """Also delete the facts that were extracted from it alone; a purge always does"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    purge: bool
    """Also erase it from history, decisions, audit, jobs, responses and caches (right memory:purge)"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""


class ExplainMemoryOptions(TypedDict, total=False):
    """Get the origin and history of a memory"""

    limit: int
    """Maximum number of results"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    cursor: str | None
    """next_cursor of the previous page"""


class ForgetOptions(TypedDict, total=False):
    """Forget what a query refers to"""

    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope such as a project; default _global"""
    ids: list[Id] | None
    """UUIDs of memories, instead of query"""
    shared: bool
    """Only memories of the whole workspace, instead of a user's, agent's or run's (right memory:share); default false"""
    session_id: str | None
    """Only memories and conversations of this session"""
    dry_run: bool
    """Report what would be removed, and remove nothing; default false"""
    purge: bool
    """Also remove it from history, logs, jobs and caches (right memory:purge); this cannot be undone; default false"""


class GetConversationOptions(TypedDict, total=False):
    """Get a conversation with its turns, in order"""

    limit: int
    """Maximum number of results"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""


class GetConversationContextOptions(TypedDict, total=False):
    """Get turns and memories for the next prompt"""

    max_tokens: int
    """Maximum size of `context`, in estimated tokens"""
    query: str | None
    """Default: the last turn of the user"""
    include_shared: bool | None
    """Include shared memories, in one ranking; default: the workspace's setting, initially false"""
    reinforce: bool
    """Count the memories as used; false for previews"""
    detail: Literal["lean", "full"]
    """lean: the fields that callers act on; full: every field of each memory or turn"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""


class GetEntityOptions(TypedDict, total=False):
    """Get an entity"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope; reads also include _global, lists without it every channel"""


class GetGoalOptions(TypedDict, total=False):
    """Get a goal with its parent, subgoals and memories"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""


class GetMemoriesOptions(TypedDict, total=False):
    """Read memories by their ids"""

    ids: Required[list[str]]
    """UUIDs of memories; 1,000 at most"""
    cursor: str | None
    """next_cursor of the previous page, with the same ids"""
    detail: Literal["lean", "full"]
    """lean: the fields that callers act on; full: every field of each memory or turn; default "lean"""


class GetMemoryOptions(TypedDict, total=False):
    """Read one memory"""

    valid_at: Moment | None
    """The version that was valid at this moment"""
    as_of: Moment | None
    """Memories as recorded at this moment instead of now; without those purged since"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    reinforce: bool
    """Count the results as used; false for previews"""


class GetMemoryDecisionsOptions(TypedDict, total=False):
    """List the decisions about a memory"""

    limit: int
    """Maximum number of results"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    cursor: str | None
    """next_cursor of the previous page"""


class GetMemoryHistoryOptions(TypedDict, total=False):
    """List the changes and versions of a memory"""

    limit: int
    """Maximum number of results"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    cursor: str | None
    """next_cursor of the previous page"""


class GetOperationOptions(TypedDict, total=False):
    """Get the progress of an operation"""


class GetUserProfileOptions(TypedDict, total=False):
    """Get the profile of a user"""


class ListChangesOptions(TypedDict, total=False):
    """List changes, in order"""

    after: str | None
    """A cursor; `now`: only future changes; default: the oldest change that is kept"""
    limit: int
    """Maximum number of results"""
    last_event_id: str | None
    """Like `after`; sent by clients that resume a stream"""


class ListConversationsOptions(TypedDict, total=False):
    """List the conversations of a scope, newest first"""

    limit: int
    """Maximum number of results"""
    include_archived: bool
    """Include archived ones"""
    consolidated: bool | None
    """Only conversations whose facts have, or have not, been extracted"""
    entity_id: Id | None
    """Only conversations that mention this entity"""
    channel: str | None
    """Soft scope; reads also include _global, lists without it every channel"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""


class ListEntitiesOptions(TypedDict, total=False):
    """List the entities of a scope"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope such as a project; default _global"""
    type: str | None
    """Only these types, such as person, organization, location, project; default: all"""
    conversation_id: str | None
    """Only entities that this conversation, given by id or name, mentions"""
    limit: int
    """Maximum number of results; default 100"""


class ListEntityRelationsOptions(TypedDict, total=False):
    """List the relations of an entity by its name"""

    limit: int
    """Maximum number of results"""
    reinforce: bool
    """Count the results as used; false for previews"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope; reads also include _global, lists without it every channel"""
    types: list[str] | None
    """Repeatable, or one comma-separated list; any spelling"""
    valid_at: Moment | None
    """Relations valid at this moment; default now"""
    include_invalid: bool
    """Include relations that are not valid at that moment"""


class ListGoalsOptions(TypedDict, total=False):
    """List the goals of a scope"""

    status: GoalStatus | None
    """Only goals with this status"""
    limit: int
    """Maximum number of results"""
    channel: str | None
    """Soft scope; reads also include _global, lists without it every channel"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""


class ListMemoriesOptions(TypedDict, total=False):
    """List the memories of a scope, newest first"""

    limit: int
    """Maximum number of results"""
    sort: Literal["created_at", "updated_at", "timestamp", "importance"]
    """Ties are ordered by id"""
    order: Literal["desc", "asc"]
    """desc: newest or most important first"""
    count: bool
    """Return the number of matches in `total`"""
    state: MemoryState
    """deleted: list deleted memories instead, as they were"""
    detail: Literal["lean", "full"]
    """lean: the fields that callers act on; full: every field of each memory or turn"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope; reads also include _global, lists without it every channel"""
    shared: bool
    """Only memories of the whole workspace, instead of a user's, agent's or run's"""
    include_shared: bool | None
    """Include shared memories, in one ranking; default: the workspace's setting, initially false"""
    scope_match: ScopeMatch
    """With several ids: all, a memory must have each; any, one is enough"""
    channels: list[str] | None
    """Several channels, in addition to _global; instead of channel. Repeatable; commas do not separate"""
    scope_mode: ScopeMode
    """given: an omitted id does not filter; exact: memories must not have it"""
    filters: str | None
    """Conditions on columns and metadata, as a tree; as URL-encoded JSON"""
    tags: list[str]
    """One of these, or all of them (tag_mode). Repeatable, or one comma-separated list"""
    tag_match: TagMatch
    """prefix: slack matches slack:channel:general"""
    tag_mode: TagMode
    """Whether one of the tags is enough or all are required"""
    exclude_tags: list[str]
    """None with these tags; tag_match applies here too. Repeatable, or one comma-separated list"""
    categories: list[str]
    """Only memories in one of these categories. Repeatable, or one comma-separated list"""
    types: list[MemoryType]
    """Only memories of these types. Repeatable, or one comma-separated list"""
    min_confidence: float | None
    """Minimum current_confidence, 0..1; memories without one are kept"""
    start: Moment | None
    """Only memories with a `timestamp` at or after this moment"""
    end: Moment | None
    """Only memories with a `timestamp` before this moment"""
    time_query: str | None
    """start and end in English, such as last week or in May 2023; see `window` in the response"""
    timestamp: Moment | None
    """Reference time for 'last week' in the query; default now"""
    timezone: str | None
    """IANA time zone for 'last week'; default: the workspace's"""
    valid_at: Moment | None
    """Memories valid at this moment instead of now, including past versions"""
    as_of: Moment | None
    """Memories as recorded at this moment instead of now; without those purged since"""
    include_archived: bool
    """Include archived memories"""


class ListScopesOptions(TypedDict, total=False):
    """List users, agents and runs that have memories"""

    type: OwnerKind | None
    """Only these"""
    limit: int
    """Maximum number of results"""


class PatchConversationOptions(TypedDict, total=False):
    """Change a conversation"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    if_match: str | None
    """The ETag of GET, or *"""
    title: str | None
    """Title, for people"""
    archived: bool | None
    """true: lists and searches omit it and its turns, until a new turn or false restores it"""
    consolidated: bool | None
    """Whether facts were extracted; a new turn resets it"""
    metadata: dict[str, Any]
    """Merged key by key; a null value removes the key"""


class PatchMemoryOptions(TypedDict, total=False):
    """Change parts of a memory"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    if_match: str | None
    """The ETag of GET, or *"""
    content: str
    """The new text; it is redacted, its times and categories are determined again, and a job embeds it"""
    tags: list[str] | None
    """Replaces all tags; null removes them. A list, or one comma-separated string"""
    importance: float
    """0..1"""
    importance_level: int
    """1..10; instead of importance"""
    type: MemoryType
    """One of seven types; a new text does not change it"""
    type_confidence: float
    """Confidence in the type, 0..1"""
    fact_confidence: float
    """Confidence in the fact, 0..1"""
    metadata: dict[str, Any] | None
    """Merged key by key; a null value removes the key, null removes all keys"""
    t_valid: Moment | None
    """Valid from this moment on; null: no start"""
    t_invalid: Moment | None
    """Valid until this moment; null: no end"""
    expires_at: Moment | None
    """When it expires; null: never"""
    timestamp: Moment
    """Only with allow_system_fields"""
    updated_at: Moment
    """Only with allow_system_fields"""
    last_accessed: Moment
    """Only with allow_system_fields"""
    allow_system_fields: bool
    """Needs the right memory:admin; default false"""


class PutUserProfileOptions(TypedDict, total=False):
    """Replace the profile of a user"""

    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    if_match: str | None
    """The ETag of GET, or *"""
    preferences: dict[str, Any]
    """What the user likes, under names of your own"""
    expertise_areas: list[str]
    """What the user knows well"""
    communication_style: dict[str, Any]
    """How to address the user, under names of your own"""
    metadata: dict[str, Any]
    """Your own data about the user"""


class RecallOptions(TypedDict, total=False):
    """Recall what helps to answer"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope; reads also include _global, lists without it every channel"""
    shared: bool
    """Only memories of the whole workspace, instead of a user's, agent's or run's; default false"""
    include_shared: bool | None
    """Include shared memories, in one ranking; default: the workspace's setting, initially false"""
    scope_match: ScopeMatch
    """With several ids: all, a memory must have each; any, one is enough; default "all"""
    channels: list[str] | None
    """Channels to search in addition to channel and _global"""
    include: RecallParts
    """Parts to return; default all"""
    weights: RecallWeights | None
    """How the parts share the token budget; default: 0.3, 0.25, 0.2, 0.15, 0.1"""
    limit: int
    """Maximum number of results in each part; default 100"""
    max_tokens: int
    """Maximum size of the bundle as text, in estimated tokens; default 2000"""
    per_conversation: int | None
    """Maximum number of passages from one conversation, e.g. 3; default: no limit"""
    around: int
    """Turns to add before and after each matching turn; default 0"""
    time_window_hours: float | None
    """Only turns and facts of the last N hours; default: no limit"""
    min_confidence: float | None
    """Minimum current_confidence of facts, 0..1; facts without one are kept"""
    min_probability: float
    """Minimum answer_probability, 0..1; results without one are kept; default 0.0"""
    valid_at: Moment | None
    """Facts that were valid at this moment instead of now, and turns that no memory keeps"""
    as_of: Moment | None
    """Turns and facts as recorded at this moment; the other parts are left out"""
    timezone: str | None
    """IANA time zone for dates; default: the workspace's"""
    techniques: Techniques | None
    """Techniques applied to the query; the others keep their setting"""
    diversity: float | None
    """0..1: how much to lower facts that repeat one ranked above; default 0"""
    reinforce: bool
    """Count the results as used; false for previews; default true"""
    detail: Literal["lean", "full"]
    """lean: the fields that callers act on; full: every field of each memory or turn; default "lean"""
    format: Literal["json", "markdown"]
    """markdown: also return one block of text for a prompt; default "json"""


class RestoreMemoryOptions(TypedDict, total=False):
    """Restore an archived or deleted memory"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    if_match: str | None
    """The ETag of GET, or *"""


class SearchEntitiesOptions(TypedDict, total=False):
    """Search entities by name or meaning"""

    query: Required[str]
    """A name or a description"""
    type: str | None
    """Only this type, such as person or project"""
    channels: list[str] | None
    """Channels to search in addition"""
    limit: int
    """Maximum number of results"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope; reads also include _global, lists without it every channel"""
    reinforce: bool
    """Count the results as used; false for previews"""


class SearchMemoriesOptions(TypedDict, total=False):
    """Search"""

    tuning: RankingTuning
    """How to rank; default: the workspace's settings"""
    reinforce: bool
    """Count the hits as used; false for previews; default true"""
    explain: bool
    """Include the terms of each hit's score; default false"""
    explain_id: Id | None
    """UUID of a memory: `why` in the response says whether it was found, or why not"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope; reads also include _global, lists without it every channel"""
    shared: bool
    """Only memories of the whole workspace, instead of a user's, agent's or run's; default false"""
    include_shared: bool | None
    """Include shared memories, in one ranking; default: the workspace's setting, initially false"""
    scope_match: ScopeMatch
    """With several ids: all, a memory must have each; any, one is enough; default "all"""
    channels: list[str] | None
    """Several channels, in addition to _global; instead of channel"""
    scope_mode: ScopeMode
    """given: an omitted id does not filter; exact: memories must not have it; default "given"""
    filters: FilterInput | None
    """Conditions on columns and metadata, as a tree"""
    tags: list[str]
    """One of these, or all of them (tag_mode)"""
    tag_match: TagMatch
    """prefix: slack matches slack:channel:general; default "prefix"""
    tag_mode: TagMode
    """Whether one of the tags is enough or all are required; default "any"""
    exclude_tags: list[str]
    """None with these tags; tag_match applies here too"""
    categories: list[str]
    """Only memories in one of these categories"""
    types: list[MemoryType]
    """Only memories of these types"""
    min_confidence: float | None
    """Minimum current_confidence, 0..1; memories without one are kept"""
    start: Moment | None
    """Only memories with a `timestamp` at or after this moment"""
    end: Moment | None
    """Only memories with a `timestamp` before this moment"""
    time_query: str | None
    """start and end in English, such as last week or in May 2023; see `window` in the response"""
    timestamp: Moment | None
    """Reference time for 'last week' in the query; default now"""
    timezone: str | None
    """IANA time zone for 'last week'; default: the workspace's"""
    valid_at: Moment | None
    """Memories valid at this moment instead of now, including past versions"""
    as_of: Moment | None
    """Memories as recorded at this moment instead of now; without those purged since"""
    include_archived: bool
    """Include archived memories; default false"""
    limit: int
    """Maximum number of hits; fewer only if fewer match; default 100"""
    prefer_tags: list[str]
    """Hits with one of these tags rank higher"""
    min_score: float
    """Minimum score of a hit; default 0.0"""
    min_probability: float
    """Minimum answer_probability, 0..1; results without one are kept; default 0.0"""
    validity: Validity
    """Memories not valid now: exclude omits them, demote ranks past ones lower and omits future ones, ignore keeps all; default "exclude"""
    connected: bool
    """Include the memories that each hit is connected to, 5 by default"""
    turns: bool
    """Also return turns whose content is in no memory, unless tags, filters or another condition that only memories can meet is given; default true"""
    detail: Literal["lean", "full"]
    """lean: the fields that callers act on; full: every field of each memory or turn; default "lean"""
    cursor: str | None
    """next_cursor of the previous page, with an otherwise identical request"""


class SearchTurnsOptions(TypedDict, total=False):
    """Search turns by meaning and words"""

    channels: list[str] | None
    """Repeatable; channels to search in addition to channel and _global"""
    time_window_hours: float | None
    """Only turns of the last N hours; default: no limit"""
    conversation_id: str | None
    """Only this conversation, by id or name"""
    limit: int
    """Maximum number of results"""
    min_probability: float
    """Minimum answer_probability, 0..1; results without one are kept"""
    detail: Literal["lean", "full"]
    """lean: the fields that callers act on; full: every field of each memory or turn"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope; reads also include _global, lists without it every channel"""
    cursor: str | None
    """next_cursor of the previous page"""


class StoreConversationLaterOptions(TypedDict, total=False):
    """Store a conversation asynchronously"""

    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope such as a project; default _global"""
    session_id: str | None
    """Your name for the chat; its facts belong to the user. With messages also the conversation's name"""
    id: Id | None
    """Your own UUID; a memory of the scope that has it already is updated"""
    type: MemoryType | None
    """One of seven types; default: classified by the service"""
    type_confidence: float | None
    """Confidence in the type, 0..1; default 0.9 when type is given"""
    importance: float | None
    """0..1; default: rated by the service"""
    importance_level: int | None
    """Importance on a scale of 1..10; instead of importance"""
    tags: list[str]
    """A list, or one comma-separated string"""
    metadata: dict[str, Any]
    """Your own keys, to filter by later; the names of a memory's fields are not allowed"""
    timestamp: Moment | None
    """When it happened; default now. Relative dates in the text refer to it"""
    timezone: str | None
    """IANA time zone for 'tomorrow at 3'; default: the timestamp's offset, else the workspace's zone"""
    t_valid: Moment | None
    """Valid from this moment on; default: no start"""
    t_invalid: Moment | None
    """Valid until this moment; default: no end"""
    updated_at: Moment | None
    """Only with allow_system_fields and content"""
    last_accessed: Moment | None
    """Only with allow_system_fields and content"""
    allow_system_fields: bool
    """For importing memories; needs the right memory:admin; default false"""
    expires_at: Moment | None
    """When it expires; default: never"""
    embedding: list[float] | None
    """Your own vector, of the service's dimension; default: computed from the text"""
    shared: bool
    """content only: a memory of the whole workspace, without user, agent or run (right memory:share); default false"""
    infer: bool
    """messages only: false stores the messages as they are; default true"""
    dedup: bool
    """content only: false stores it even if a similar memory exists; default true"""
    dry_run: bool
    """Report what would happen and store nothing; default false"""
    use_llm: bool | None
    """false: use rules only; default: use the language model if there is one"""
    summarise: bool
    """content only: shorten a long text before storing it; needs a language model; default false"""
    limits: Literal["open", "strict"] | None
    """strict rejects content longer than the hard limit (2,000 characters); default: the workspace's"""
    prompt: str | None
    """messages with infer only: replaces the prompt for extracting facts"""
    filters: FilterInput | None
    """messages with infer only: the memories to compare new facts with"""


class StoreMemoriesOptions(TypedDict, total=False):
    """Store several texts"""

    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""


class StoreMemoryOptions(TypedDict, total=False):
    """Store a text or a conversation"""

    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope such as a project; default _global"""
    session_id: str | None
    """Your name for the chat; its facts belong to the user. With messages also the conversation's name"""
    id: Id | None
    """Your own UUID; a memory of the scope that has it already is updated"""
    type: MemoryType | None
    """One of seven types; default: classified by the service"""
    type_confidence: float | None
    """Confidence in the type, 0..1; default 0.9 when type is given"""
    importance: float | None
    """0..1; default: rated by the service"""
    importance_level: int | None
    """Importance on a scale of 1..10; instead of importance"""
    tags: list[str]
    """A list, or one comma-separated string"""
    metadata: dict[str, Any]
    """Your own keys, to filter by later; the names of a memory's fields are not allowed"""
    timestamp: Moment | None
    """When it happened; default now. Relative dates in the text refer to it"""
    timezone: str | None
    """IANA time zone for 'tomorrow at 3'; default: the timestamp's offset, else the workspace's zone"""
    t_valid: Moment | None
    """Valid from this moment on; default: no start"""
    t_invalid: Moment | None
    """Valid until this moment; default: no end"""
    updated_at: Moment | None
    """Only with allow_system_fields and content"""
    last_accessed: Moment | None
    """Only with allow_system_fields and content"""
    allow_system_fields: bool
    """For importing memories; needs the right memory:admin; default false"""
    expires_at: Moment | None
    """When it expires; default: never"""
    embedding: list[float] | None
    """Your own vector, of the service's dimension; default: computed from the text"""
    shared: bool
    """content only: a memory of the whole workspace, without user, agent or run (right memory:share); default false"""
    infer: bool
    """messages only: false stores the messages as they are; default true"""
    dedup: bool
    """content only: false stores it even if a similar memory exists; default true"""
    dry_run: bool
    """Report what would happen and store nothing; default false"""
    use_llm: bool | None
    """false: use rules only; default: use the language model if there is one"""
    summarise: bool
    """content only: shorten a long text before storing it; needs a language model; default false"""
    limits: Literal["open", "strict"] | None
    """strict rejects content longer than the hard limit (2,000 characters); default: the workspace's"""
    prompt: str | None
    """messages with infer only: replaces the prompt for extracting facts"""
    filters: FilterInput | None
    """messages with infer only: the memories to compare new facts with"""


class StoreTurnOptions(TypedDict, total=False):
    """Store a turn"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    name: str | None
    """Name of the speaker"""
    turn_index: int | None
    """Its index, from 0; default: the end"""
    timestamp: Moment | None
    """When it was said; default now"""
    token_count: int | None
    """Number of tokens; default: estimated"""
    model: str | None
    """The model that wrote it"""
    metadata: dict[str, Any]
    """Your own data"""
    embedding: list[float] | None
    """Your own vector, of the service's dimension"""


class UndoDecisionOptions(TypedDict, total=False):
    """Undo a decision"""

    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""


class UpdateGoalOptions(TypedDict, total=False):
    """Change a goal"""

    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    if_match: str | None
    """The ETag of GET, or *"""
    description: str
    """What to achieve"""
    priority: int
    """Greater comes first"""
    deadline: Moment | None
    """Deadline; null: none"""
    parent_id: Id | None
    """UUID of the parent goal; null: none"""
    blocked_by: list[Id]
    """Replaces the list of goals it waits for"""
    memory_ids: list[Id]
    """Replaces the list of memories tied to it"""
    status: Literal["active", "blocked"]
    """blocked: it waits for something, until it is set to active again"""


class UpsertEntityOptions(TypedDict, total=False):
    """Create an entity, or add to the one with this name"""

    idempotency_key: str | None
    """Repeat a write safely: the same key and body get the first answer again (kept 24 h)."""
    if_match: str | None
    """The ETag of GET, or *"""
    user_id: str | None
    """End user; a hard filter"""
    agent_id: str | None
    """Agent or persona; a hard filter"""
    run_id: str | None
    """One run with its own facts; a hard filter"""
    channel: str | None
    """Soft scope such as a project; default _global"""
    name: Required[str]
    """Its name; an existing entity with this name or alias is updated"""
    type: str | None
    """Default concept; variants are normalised: `people` becomes person"""
    description: str | None
    """What it is; its vector is computed from name and description"""
    aliases: list[str]
    """Other names, added to the stored ones"""
    properties: dict[str, Any]
    """Your own data, merged key by key"""
    salience: float | None
    """0..1, default 0.5"""
    embedding: list[float] | None
    """Your own vector; default: computed from name and description"""


class WhoamiOptions(TypedDict, total=False):
    """Get the key or token of this request"""
