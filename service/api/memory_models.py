"""How does a memory look on the wire? The request and the read models that memory routes share (A7)."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from service.api.filters import FilterIn
from service.api.schemas import (
    Channel,
    Filled,
    Id,
    Metadata,
    Name,
    NextCursor,
    OfAgent,
    OfRun,
    OfUser,
    OnePage,
    RequestModel,
    ResponseModel,
    Time,
    Unit,
    Zone,
)
from service.domain.decision import Action
from service.domain.draft import DedupAction, EmbeddingStatus
from service.domain.kinds import ClassificationSource, MemoryType
from service.domain.temporal import TemporalTag, TemporalType

TypeName = Literal["Decision", "Pattern", "Preference", "Style", "Habit", "Insight", "Context"]
Tag = str
MAX_TAGS = 100
MAX_TEXT = 1_000_000
MAX_TTL_S = 3_155_760_000
"""A hundred years."""

SCOPE_SCHEMA: list[JsonValue] = [{"required": ["user_id"]}, {"required": ["agent_id"]}, {"required": ["run_id"]}]


RESERVED = frozenset(
    {
        *("id", "content", "type", "confidence", "importance", "tags", "tag_prefixes", "embedding", "archived"),
        *("timestamp", "t_valid", "t_invalid", "updated_at", "last_accessed", "relevance_score"),
    }
)
"""Names that are fields of a memory, and no keys of its metadata (R1.08)."""


def refuse_reserved(metadata: Metadata | None) -> None:
    """Raises ValueError for a key that is a field; null, which removes a key, is fine."""
    for name, value in (metadata or {}).items():
        if name in RESERVED and value is not None:
            raise ValueError(f"metadata.{name}: is the name of a field of the memory, not of its metadata")


class MessageInput(RequestModel):
    """One message of a conversation, as clients send them: parts without text are left out with a warning."""

    role: str = Field(
        min_length=1,
        max_length=20,
        examples=["user"],
        description="user, assistant, system or tool; others are taken with a warning",
    )
    content: str | list[Any] | None = Field(
        None,
        examples=["I moved to Lisbon last week."],
        description="What was said; of a list of parts those with text are kept",
    )
    name: str | None = Field(None, max_length=200, description="Who speaks, when the role does not say it")
    timestamp: Time | None = Field(None, description="When it was said; default the request's")


class ScopeFields(RequestModel):
    """A request that names a scope: at least one of the three ids, here or as the key's default."""

    user_id: Name | None = Field(None, description="End user; a hard filter", examples=["alice"])
    agent_id: Name | None = Field(None, description="Agent or persona; a hard filter")
    run_id: Name | None = Field(None, description="One run, whose facts are its own; a hard filter")
    channel: Channel | None = Field(None, description="Soft scope such as a project; default _global")


class MemoryFields(ScopeFields):
    """What a caller may set by hand; everything left out is found out."""

    session_id: Name | None = Field(
        None,
        description="Your name for the chat, whose facts are the user's; with messages also the conversation's name",
    )
    id: Id | None = Field(None, description="Your own UUID; an existing one in the same scope is updated")
    type: TypeName | None = Field(None, description="One of seven kinds; found out when left out")
    type_confidence: Unit | None = Field(
        None, description="0..1: how sure the type is; left out: 0.9 for one that is given"
    )
    confidence: Unit | None = Field(None, description="The same as type_confidence")
    importance: Unit | None = Field(None, description="0..1; found out when left out")
    importance_level: int | None = Field(None, ge=1, le=10, description="1..10, ten times importance; instead of it")
    tags: list[Tag] | str = Field(
        default_factory=list, description="A list, or one comma-separated string", examples=[["project:atlas", "work"]]
    )
    metadata: Metadata = Field(
        default_factory=dict,
        description="Whatever you like to filter by later; not the names of a memory's own fields",
        examples=[{"project": "atlas", "priority": 3}],
    )
    timestamp: Time | None = Field(None, description="When it happened; default now. Relative dates count from here")
    timezone: Zone | None = Field(
        None, description="IANA zone in which 'tomorrow at 3' is meant; default the workspace's"
    )
    t_valid: Time | None = Field(None, description="First moment it counts; left out: always did")
    t_invalid: Time | None = Field(None, description="First moment it no longer counts; left out: it goes on")
    updated_at: Time | None = Field(None, description="With allow_system_fields only; content only")
    last_accessed: Time | None = Field(None, description="With allow_system_fields only; content only")
    allow_system_fields: bool = Field(False, description="To move memories in; needs the right memory:admin")
    ttl_s: int | None = Field(None, ge=1, le=MAX_TTL_S, description="Seconds until it is gone; instead of expires_at")
    expires_at: Time | None = Field(None, description="From this moment on it is gone; left out: never")
    embedding: list[float] | None = Field(
        None, description="Your own vector, of the service's dimension; made of the text when left out"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.importance is not None and self.importance_level is not None:
            raise ValueError("importance: give importance or importance_level, not both")
        if self.confidence is not None and self.type_confidence is not None:
            raise ValueError("confidence: give type_confidence or confidence, not both")
        if self.t_valid and self.t_invalid and self.t_valid >= self.t_invalid:
            raise ValueError("t_valid: must lie before t_invalid")
        if self.ttl_s is not None and self.expires_at is not None:
            raise ValueError("ttl_s: give ttl_s or expires_at, not both")
        if isinstance(self.tags, list) and len(self.tags) > MAX_TAGS:
            raise ValueError(f"tags: at most {MAX_TAGS} are kept")
        return self


class StoreRequest(MemoryFields):
    """Exactly one of `content` (one memory) and `messages` (a conversation)."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["content"]}, {"required": ["messages"]}],
            "anyOf": SCOPE_SCHEMA,
            "examples": [{"content": "Prefers tea over coffee in the morning.", "user_id": "alice"}],
        }
    )

    content: Filled | None = Field(
        None,
        min_length=1,
        max_length=MAX_TEXT,
        description="One memory, as a text",
        examples=["Prefers tea over coffee in the morning."],
    )
    messages: list[MessageInput] | str | None = Field(
        None,
        description="A conversation that facts are read from; a string is one message of the user",
        examples=[[{"role": "user", "content": "I moved to Lisbon last week."}]],
    )
    infer: bool = Field(True, description="messages only: false stores them as they are")
    dedup: bool = Field(True, description="content only: false stores it beside what says nearly the same")
    dry_run: bool = Field(False, description="Say what would happen and store nothing")
    use_llm: bool | None = Field(
        None, description="false: by rules alone; left out or true: by the language model, if there is one"
    )
    summarise: bool = Field(False, description="content only: keep a long text in short; needs a language model")
    limits: Literal["open", "strict"] | None = Field(
        None,
        description="strict refuses a content longer than the hard limit (2,000 characters); default the workspace's",
    )
    prompt: str | None = Field(
        None,
        min_length=1,
        max_length=20_000,
        description="messages with infer only: replaces the service's prompt that facts are read with",
    )
    filters: FilterIn | None = Field(
        None, description="messages with infer only: which memories the new facts are compared with"
    )

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.content is None) == (self.messages is None):
            raise ValueError("content: give exactly one of content and messages")
        if self.content is not None:  # what is said in a conversation may bear any metadata (C42)
            refuse_reserved(self.metadata)
        return self


class StoreBatchRequest(RequestModel):
    """Several single memories; each is its own transaction."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"items": [{"content": "Parks in bay 12.", "user_id": "alice"}]}]}
    )

    items: list[StoreRequest] = Field(min_length=1, description="Each like the body of POST /v1/memories; 100 at most")


# -- replies ------------------------------------------------------------------------------------------------------


class TimeMention(ResponseModel):
    """A temporal expression in the text."""

    text: str = Field(description="As it stands there", examples=["last week"])
    start: int = Field(description="Its first character, from 0", examples=[12])
    end: int = Field(description="The character after its last one", examples=[21])
    kind: str = Field(description="date, time, datetime, range, duration or set", examples=["range"])
    begins_at: Time | None = Field(None, description="What it means, half-open; null where it is open")
    ends_at: Time | None = Field(
        None, description="The end of it, the same moment as begins_at for an instant; null where it is open"
    )


class TemporalDetails(ResponseModel):
    """When a text speaks of."""

    type: TemporalType = Field(description="temporal: it counts until valid_until", examples=["persistent"])
    valid_until: Time | None = Field(None, description="With type temporal: it counts until then; else null")
    tag: TemporalTag | None = Field(None, description="Whether it speaks of now, of what was or will be; null: unset")
    mentions: list[TimeMention] = Field(default_factory=list, description="In the order of the text")


class DedupOutcome(ResponseModel):
    """`similarity`: calibrated cosine 0..1 to the nearest memory of the scope; null when nothing was compared."""

    action: DedupAction = Field(description="Stored as new, merged into one there was, or known already")
    existing_id: Id | None = Field(
        default=None, description="The memory that it was merged into, or that says it already; null: there is none"
    )
    similarity: float | None = Field(
        default=None,
        description="0..1 to the nearest memory of the scope; null when nothing was compared",
        examples=[0.42],
    )


class RedactionCount(ResponseModel):
    """One kind of secret or personal data that was cut out."""

    label: str = Field(description="What was cut out", examples=["API_KEY"])
    count: int = Field(description="How often", examples=[1])


class PiiSummary(ResponseModel):
    """What was cut out of a text before it was kept."""

    redactions: list[RedactionCount] = Field(
        default_factory=list, description="Secrets and personal data that were cut out, by kind"
    )


class DecisionEvidence(ResponseModel):
    """Who decided about a near neighbour, and why."""

    source: str = Field(examples=["rules"], description="rules or llm")
    model: str = Field(description="Which model, or which version of the rules", examples=["rules:1"])
    verdict: str = Field(description="ADD, UPDATE, DELETE or NONE", examples=["UPDATE"])
    reason: str = Field(description="Why, in words", examples=["a newer value of the same attribute"])
    rejected: bool = Field(description="The model's answer could not be used, and the rules decided")


class StoreOutcome(ResponseModel):
    """What became of one text. `event` says it in one word: ADD, UPDATE, NONE."""

    event: Action = Field(
        description="ADD: a new memory; UPDATE: one that was there has changed; NONE: nothing new", examples=["ADD"]
    )
    id: Id | None = Field(description="UUID of the memory; null when nothing was stored")
    memory: str | None = Field(
        description="Its text now, secrets cut out; null: there is none",
        examples=["Prefers tea over coffee in the morning"],
    )
    old_memory: str | None = Field(default=None, description="Its text before an UPDATE; else null")
    dedup: DedupOutcome = Field(description="What it was compared with")
    decision: DecisionEvidence | None = Field(
        default=None, description="Who decided about a near neighbour; null when nobody had to"
    )
    importance: float | None = Field(
        description="0..1; null: not looked for in a text that is not kept", examples=[0.6]
    )
    importance_level: int | None = Field(description="The same as 1..10; null: not looked for", examples=[6])
    importance_band: str | None = Field(
        description="Critical, Important, Standard, Minor or Low; null: not looked for", examples=["Standard"]
    )
    temporal: TemporalDetails | None = Field(
        description="Which times it names, and until when it counts; null: not looked for"
    )
    categories: list[str] = Field(description="What it is about", examples=[["food"]])
    tags: list[str] = Field(description="In lower case", examples=[["drink"]])
    tag_prefixes: list[str] = Field(description="The tags and what stands before each : or /", examples=[["drink"]])
    type: MemoryType | None = Field(description="One of seven kinds; null: not looked for", examples=["Preference"])
    type_confidence: float | None = Field(
        description="0..1: how sure the type is; null: not looked for", examples=[0.85]
    )
    classification_source: ClassificationSource | None = Field(
        description="Who named the type; null: not looked for", examples=["regex"]
    )
    pii: PiiSummary = Field(description="What was cut out")
    entities: dict[str, list[str]] = Field(default_factory=dict, description="Found by enrichment, shortly after")
    embedding: EmbeddingStatus = Field(description="stored, or queued: found by its words until its vector is made")
    enrichment: Literal["queued", "none"] = Field(
        description="queued: entities and relations come shortly after", examples=["queued"]
    )
    summarized: bool = Field(default=False, description="It is kept in short")
    original_length: int | None = Field(default=None, description="Characters before that; null: it was not cut short")
    summarized_length: int | None = Field(default=None, description="Characters after that; null: it was not cut short")
    role: str | None = Field(default=None, description="Who said it; null: nobody, it was stored as a text")
    conversation_id: Id | None = Field(default=None, description="UUID of the conversation it came from; null: of none")
    turn_index: int | None = Field(default=None, description="Its place there, from 0; null: none")
    warnings: list[str] = Field(
        default_factory=list, description="What was left out or cut short, each as `code: sentence`"
    )
    timings_ms: dict[str, float] = Field(default_factory=dict, description="Per stage")


class LlmUsage(ResponseModel):
    """What models were asked for."""

    llm_calls: int = Field(default=0, description="Questions to the language model")
    prompt_tokens: int = Field(default=0, description="Tokens sent")
    completion_tokens: int = Field(default=0, description="Tokens of its answers")
    embedded_texts: int = Field(default=0, description="Texts that were embedded")
    cached: int = Field(default=0, description="Answers that were known from before")


class StoreResponse(ResponseModel):
    """One result per text, in the order they were sent."""

    results: list[StoreOutcome] = Field(description="What became of each text or fact, in order")
    warnings: list[str] = Field(
        default_factory=list, description="Of the request as a whole; no_facts says why nothing was stored"
    )
    usage: LlmUsage = Field(description="What models were asked for")
    timings_ms: dict[str, float] = Field(
        description="By stage, and the total", examples=[{"embed": 7.8, "total": 34.1}]
    )
    dry_run: bool = Field(default=False, description="Nothing was stored")


class BatchItemError(ResponseModel):
    """Why one item of a batch failed."""

    status: int = Field(description="The HTTP status it would have alone", examples=[400])
    code: str = Field(description="What is wrong, for programs", examples=["invalid_input"])
    detail: str = Field(description="What is wrong, for people")
    field: str | None = Field(default=None, description="Where, inside the item; null: no field is to blame")


class StoreBatchItem(ResponseModel):
    """How one item of a batch fared: its results or its error."""

    index: int = Field(description="Its place in the request, from 0")
    status: int = Field(description="The HTTP status it would have alone", examples=[201])
    results: list[StoreOutcome] = Field(default_factory=list, description="As of a single store; none when it failed")
    error: BatchItemError | None = Field(default=None, description="Why it failed; null when it did not")


class StoreBatchResponse(ResponseModel):
    """One item for each that was sent."""

    results: list[StoreBatchItem] = Field(description="One for each item, in order")
    succeeded: int = Field(description="So many were stored, or known already")
    failed: int = Field(description="So many were not")
    usage: LlmUsage = Field(description="What models were asked for, all items together")


class MemoryResponse(ResponseModel):
    """A stored memory."""

    id: Id = Field(description="UUID")
    memory: str = Field(description="Its text, secrets cut out", examples=["Prefers tea over coffee in the morning"])
    hash: str = Field(description="MD5 of the text, in hexadecimal", examples=["9e107d9d372bb6826bd81d3542a419d6"])
    type: MemoryType = Field(description="One of seven kinds", examples=["Preference"])
    type_confidence: float = Field(description="0..1: how sure the type is", examples=[0.85])
    classification_source: ClassificationSource = Field(description="Who named the type", examples=["regex"])
    fact_confidence: float | None = Field(
        description="0..1: how sure a fact out of a conversation is; null for what was stored as it is", examples=[0.9]
    )
    importance: float = Field(description="0..1", examples=[0.6])
    importance_level: int = Field(description="The same as 1..10", examples=[6])
    importance_band: str = Field(description="Critical, Important, Standard, Minor or Low", examples=["Standard"])
    tags: list[str] = Field(description="In lower case, 100 at most", examples=[["drink", "morning:tea"]])
    tag_prefixes: list[str] = Field(
        description="The tags and what stands before each : or /", examples=[["drink", "morning", "morning:tea"]]
    )
    categories: list[str] = Field(description="What it is about, in lower case", examples=[["food"]])
    metadata: Metadata = Field(description="Yours", examples=[{"project": "atlas"}])
    temporal: TemporalDetails = Field(description="The times that its text names, and until when it counts")
    entities: dict[str, list[str]] = Field(
        description="Names in it by kind, found shortly after storing", examples=[{"people": ["Ana"]}]
    )
    summary: str | None = Field(
        description="Its first sentence, 240 characters at most, made shortly after storing; null: not yet",
        examples=["Prefers tea"],
    )
    enriched: bool = Field(description="Whether entities and summary have been looked for")
    enriched_at: Time | None = Field(description="When that was; null: not yet", examples=["2026-03-02T09:30:04+00:00"])
    enrichment_attempts: int = Field(description="From 0; after 3 it is given up", examples=[1])
    lifecycle_state: str = Field(
        description="enrichment_queued, active, enrichment_abandoned or archived", examples=["active"]
    )
    archived: bool = Field(description="Retired: reads leave it out unless include_archived is set")
    embedding: EmbeddingStatus = Field(description="Whether its vector is there, or still to be made")
    user_id: str | None = Field(description="End user; null: none", examples=["alice"])
    agent_id: str | None = Field(description="Agent or persona; null: none", examples=["guide"])
    run_id: str | None = Field(description="One run, whose facts are its own; null: none", examples=["session-1"])
    channel: str = Field(description="Soft scope; _global is seen from every channel", examples=["_global"])
    session_id: str | None = Field(description="As it was stored with; null: none", examples=["session-1"])
    role: str | None = Field(
        description="Who said it, such as user or assistant; null: nobody, it was stored as a text", examples=["user"]
    )
    speaker: str | None = Field(description="The name of who said it; null: not given", examples=["Ana"])
    conversation_id: Id | None = Field(description="UUID of the conversation that it comes from; null: of none")
    turn_index: int | None = Field(
        description="Of a message kept word by word its place in the conversation, from 0; else null", examples=[12]
    )
    timestamp: Time = Field(description="When it happened", examples=["2026-03-02T09:30:00+00:00"])
    t_valid: Time | None = Field(description="First moment it counts; null: always did")
    t_invalid: Time | None = Field(description="First moment it no longer counts; null: still does")
    relevance: float = Field(description="0..1: fades without use; 1 when stored", examples=[0.97])
    salience: float = Field(description="0..1: begins as importance, grows with use", examples=[0.6])
    access_count: int = Field(description="How often it was found, from 0; about a second late", examples=[3])
    last_accessed: Time | None = Field(
        description="When it was last found, before that when it was stored; null: not known",
        examples=["2026-03-04T18:00:00+00:00"],
    )
    version: int = Field(description="From 1, one more with each change; the ETag of one memory", examples=[1])
    created_at: Time = Field(description="When it was stored", examples=["2026-03-02T09:30:01+00:00"])
    updated_at: Time = Field(description="When it was last changed", examples=["2026-03-02T09:30:01+00:00"])
    expires_at: Time | None = Field(description="From this moment on it is gone; null: never")


class TotalCount(ResponseModel):
    """How many there are: counted up to 10,000, an estimate above."""

    value: int = Field(description="How many, from 0")
    is_exact: bool = Field(description="true: counted; false: above 10,000, estimated by the planner")


class MemoryPage(ResponseModel):
    """Newest first unless asked otherwise; hand `next_cursor` back with the same order to read on."""

    results: list[MemoryResponse] = Field(description="At most `limit` memories")
    next_cursor: NextCursor = None
    total: TotalCount | None = Field(None, description="With count=true; else null")
    warnings: list[str] = Field(description="What was left out, each as `code: sentence`", default_factory=list)


class MemoryHistoryItem(ResponseModel):
    """One change of a memory, known in the half-open [recorded_from, recorded_to)."""

    id: Id = Field(description="UUID of the entry")
    memory_id: Id = Field(description="UUID of the memory")
    event: Action = Field(description="What happened; DELETE: it was deleted, or archived by the curator")
    old_memory: str | None = Field(description="Its text before; null: there was none")
    new_memory: str | None = Field(description="Its text afterwards; null: after a DELETE")
    is_deleted: bool = Field(description="Whether it was a DELETE")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    timestamp: Time = Field(description="The same as recorded_from")
    recorded_from: Time = Field(description="When it happened: from this moment on it was so")
    recorded_to: Time | None = Field(description="The moment of the next change; null: it still is so")


class MemoryHistoryResponse(ResponseModel):
    """Oldest first; there also after the memory is gone."""

    results: list[MemoryHistoryItem] = Field(description="Every entry there is")
    next_cursor: OnePage = None
