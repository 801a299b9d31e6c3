"""Request and response models for storing memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from service.domain import moments
from service.domain.decision import Action
from service.domain.draft import DedupOutcome, Draft, EmbeddingStatus
from service.domain.kinds import ClassificationSource, ImportanceBand, MemoryType
from service.domain.memory import Outcome
from service.domain.sizes import MAX_ITEMS, MAX_MESSAGES, MAX_TEXT
from service.domain.temporal import TemporalDetails
from service.domain.text import RedactionCount
from service.http.free_json import JsonObject
from service.http.narrowing import FilterTree
from service.http.schemas import (
    BatchItemError,
    Id,
    InDocument,
    Name,
    RequestModel,
    ResponseModel,
    Role,
    ScopeFields,
    Speaker,
    Tags,
    Text,
    Time,
    TypeName,
    Unit,
    Vector,
    Zone,
    check_period,
    example,
    refuse_reserved,
)
from service.language import importance

Said = Annotated[str, Field(max_length=MAX_TEXT)]
Parts = Annotated[list[Any], Field(max_length=MAX_ITEMS)]
"""Parts of a message. Only those with a `text` are kept: a picture may be a megabyte."""


ELSEWHERE = frozenset(
    {
        *("id", "type", "created_at", "status", "model", "refusal", "annotations", "audio", "function_call"),
        *("tool_calls", "tool_call_id", "reasoning", "reasoning_content", "finish_reason", "usage", "metadata"),
        *("additional_kwargs", "response_metadata", "usage_metadata", "invalid_tool_calls", "example", "artifact"),
        *("call_id", "arguments", "output", "summary", "encrypted_content", "stop_reason", "stop_sequence"),
    }
)
"""Message fields of other APIs and frameworks. Only the time and the type, which may hold the role, are read."""

ROLES_ELSEWHERE = {"human": "user", "ai": "assistant"}


class MessageInput(RequestModel):
    """One message of a conversation. Parts without text are dropped with a warning."""

    role: Role = Field(description="user, assistant, system or tool; other roles are accepted with a warning")
    content: Annotated[Said | Parts, InDocument("string")] | None = Field(
        None,
        examples=["I moved to Lisbon last week."],
        description="The text; in a list of parts, those with text are kept",
    )
    name: Speaker | None = Field(None, description="The speaker's name")
    timestamp: Time | None = Field(None, description="When it was said; default: the request's timestamp")

    _left_out: frozenset[str] = PrivateAttr(frozenset())

    @model_validator(mode="wrap")
    @classmethod
    def _as_kept_elsewhere(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Accepts messages as OpenAI, LangChain and others store them, without the fields that are unknown here."""
        if not isinstance(given, dict):
            return handler(given)
        sent = {name: value for name, value in given.items() if name not in ELSEWHERE}
        role = sent.get("role", given.get("type"))
        if isinstance(role, str):
            sent["role"] = ROLES_ELSEWHERE.get(role, role)
        if "timestamp" not in sent and given.get("created_at") is not None:
            try:
                sent["timestamp"] = moments.parse(given["created_at"])
            except ValueError as exc:
                raise ValueError(f"created_at: {exc}") from None
        found = handler(sent)
        found._left_out = frozenset(given.keys() & ELSEWHERE - {"created_at", "type"})
        return found

    @property
    def left_out(self) -> frozenset[str]:
        """The fields that were sent and ignored."""
        return self._left_out


Messages = Annotated[list[MessageInput], Field(max_length=MAX_MESSAGES)]


class StoreRequest(ScopeFields):
    """Exactly one of `content` (one memory) and `messages` (a conversation), and whose it is: user_id, agent_id, run_id
    or shared."""

    model_config = example(content="Prefers tea over coffee in the morning.", user_id="alice")

    session_id: Name | None = Field(
        None,
        description="Your name for the chat; its facts belong to the user. With messages also the conversation's name",
    )
    id: Id | None = Field(None, description="Your own UUID; a memory of the scope that has it already is updated")
    type: TypeName | None = Field(None, description="One of seven types; default: classified by the service")
    type_confidence: Unit | None = Field(
        None, description="Confidence in the type, 0..1; default 0.9 when type is given"
    )
    importance: Unit | None = Field(None, description="0..1; default: rated by the service")
    importance_level: int | None = Field(
        None, ge=1, le=10, description="Importance on a scale of 1..10; instead of importance"
    )
    tags: Tags = Field(
        default_factory=list, description="A list, or one comma-separated string", examples=[["project:atlas", "work"]]
    )
    metadata: JsonObject = Field(
        default_factory=dict,
        description="Your own keys, to filter by later; the names of a memory's fields are not allowed",
        examples=[{"project": "atlas", "priority": 3}],
    )
    timestamp: Time | None = Field(
        None, description="When it happened; default now. Relative dates in the text refer to it"
    )
    timezone: Zone | None = Field(
        None,
        description="IANA time zone for 'tomorrow at 3'; default: the timestamp's offset, else the workspace's zone",
    )
    t_valid: Time | None = Field(None, description="Valid from this moment on; default: no start")
    t_invalid: Time | None = Field(None, description="Valid until this moment; default: no end")
    updated_at: Time | None = Field(None, description="Only with allow_system_fields and content")
    last_accessed: Time | None = Field(None, description="Only with allow_system_fields and content")
    allow_system_fields: bool = Field(False, description="For importing memories; needs the right memory:admin")
    expires_at: Time | None = Field(None, description="When it expires; default: never")
    embedding: Vector | None = Field(
        None, description="Your own vector, of the service's dimension; default: computed from the text"
    )

    content: Text | None = Field(
        None,
        description="One memory, as a text",
        examples=["Prefers tea over coffee in the morning."],
    )
    messages: Annotated[Messages | Said, InDocument("array")] | None = Field(
        None,
        description="A conversation to extract facts from; a string is one message of the user",
        examples=[[{"role": "user", "content": "I moved to Lisbon last week."}]],
    )
    shared: bool = Field(
        False,
        description="content only: a memory of the whole workspace, without user, agent or run (right memory:share)",
    )
    infer: bool = Field(True, description="messages only: false stores the messages as they are")
    dedup: bool = Field(True, description="content only: false stores it even if a similar memory exists")
    dry_run: bool = Field(False, description="Report what would happen and store nothing")
    use_llm: bool | None = Field(
        None, description="false: use rules only; default: use the language model if there is one"
    )
    summarise: bool = Field(
        False, description="content only: shorten a long text before storing it; needs a language model"
    )
    limits: Literal["open", "strict"] | None = Field(
        None,
        description="strict rejects content longer than the hard limit (2,000 characters); default: the workspace's",
    )
    prompt: str | None = Field(
        None,
        min_length=1,
        max_length=20_000,
        description="messages with infer only: replaces the prompt for extracting facts",
    )
    filters: FilterTree | None = Field(
        None, description="messages with infer only: the memories to compare new facts with"
    )

    @model_validator(mode="before")
    @classmethod
    def _in_the_zone_of_its_time(cls, given: Any) -> Any:
        """Defaults the time zone to the offset of the first timestamp, if it is a whole number of hours."""
        if not isinstance(given, dict) or given.get("timezone") is not None:
            return given
        messages = given.get("messages")
        times = [
            each.get("timestamp") or each.get("created_at")
            for each in (given, *(messages if isinstance(messages, list) else ()))
            if isinstance(each, dict)
        ]
        zone = next((found for time in times if (found := moments.zone_of(time))), None)
        return {**given, "timezone": zone} if zone else given

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.importance is not None and self.importance_level is not None:
            raise ValueError("importance: give importance or importance_level, not both")
        check_period(self.t_valid, self.t_invalid)
        if (self.content is None) == (self.messages is None):
            raise ValueError("content: give exactly one of content and messages")
        if self.content is not None:  # messages may have any metadata
            refuse_reserved(self.metadata)
        return self


class StoreBatchRequest(RequestModel):
    """Several texts, each stored in its own transaction."""

    model_config = example(items=[{"content": "Parks in bay 12.", "user_id": "alice"}])

    items: list[StoreRequest] = Field(
        min_length=1, max_length=MAX_ITEMS, description="Bodies of POST /v1/memories; 100 at most"
    )


# -- answers


class PiiSummary(ResponseModel):
    """What was redacted in a text before it was stored."""

    redactions: list[RedactionCount] = Field(
        default_factory=list, description="Redacted secrets and personal data, by kind"
    )


class DecisionEvidence(ResponseModel):
    """How a similar memory was decided about, and why."""

    source: str = Field(examples=["rules"], description="rules or llm")
    model: str = Field(description="Which model, or which version of the rules", examples=["rules:1"])
    verdict: str = Field(description="ADD, UPDATE, DELETE or NONE", examples=["UPDATE"])
    reason: str = Field(description="Why, in words", examples=["a newer value of the same attribute"])
    rejected: bool = Field(description="Whether the model's answer was unusable and the rules decided")


class StoreOutcome(ResponseModel):
    """The outcome for one text; `event` is ADD, UPDATE or NONE."""

    event: Action = Field(
        description="ADD: a new memory; UPDATE: an existing one has changed; NONE: nothing new", examples=["ADD"]
    )
    id: Id | None = Field(description="UUID of the memory; null when nothing was stored")
    memory: str | None = Field(
        description="Its text now, redacted; null: there is none, or it existed before and the key may not read it",
        examples=["Prefers tea over coffee in the morning"],
    )
    old_memory: str | None = Field(
        default=None, description="Its text before an UPDATE, if the key may read it; else null"
    )
    kept_as: Id | None = Field(
        default=None,
        description="With NONE: the past version with this text, because it is older than what is known; else null",
    )
    dedup: DedupOutcome = Field(description="What it was compared with")
    decision: DecisionEvidence | None = Field(
        default=None, description="The decision about a similar memory; null when none was needed"
    )
    importance: float | None = Field(
        description="0..1; null: not determined, as the text is not stored", examples=[0.6]
    )
    importance_level: int | None = Field(
        description="Importance on a scale of 1..10; null: not determined", examples=[6]
    )
    importance_band: ImportanceBand | None = Field(
        description="The importance as a word; null: not determined", examples=["Standard"]
    )
    temporal: TemporalDetails | None = Field(
        description="The times it mentions, and until when it is valid; null: not determined"
    )
    categories: list[str] = Field(description="What it is about", examples=[["food"]])
    tags: list[str] = Field(description="Lower case", examples=[["drink"]])
    tag_prefixes: list[str] = Field(description="The tags and their prefixes up to each : or /", examples=[["drink"]])
    type: MemoryType | None = Field(description="One of seven types; null: not determined", examples=["Preference"])
    type_confidence: float | None = Field(
        description="Confidence in the type, 0..1; null: not determined", examples=[0.85]
    )
    classification_source: ClassificationSource | None = Field(
        description="How the type was determined; null: not determined", examples=["regex"]
    )
    pii: PiiSummary = Field(description="What was redacted")
    entities: dict[str, list[str]] = Field(
        default_factory=dict, description="Empty here; enrichment finds them shortly after"
    )
    embedding: EmbeddingStatus = Field(description="stored, or queued: found by its words until its vector is computed")
    enrichment: Literal["queued", "none"] = Field(
        description="queued: entities and relations follow shortly", examples=["queued"]
    )
    summarized: bool = Field(default=False, description="Whether the text was shortened before storing")
    original_length: int | None = Field(default=None, description="Characters before shortening; null: not shortened")
    summarized_length: int | None = Field(default=None, description="Characters after shortening; null: not shortened")
    role: str | None = Field(default=None, description="Role of the speaker; null: not a message")
    conversation_id: Id | None = Field(default=None, description="UUID of its conversation; null: none")
    turn_index: int | None = Field(default=None, description="Its index in the conversation, from 0; null: none")
    warnings: list[str] = Field(
        default_factory=list, description="What was dropped or truncated, each as `code: sentence`"
    )
    timings_ms: dict[str, float] = Field(default_factory=dict, description="Milliseconds per stage")


class LlmUsage(ResponseModel):
    """Model calls and tokens."""

    llm_calls: int = Field(default=0, description="Calls to the language model")
    prompt_tokens: int = Field(default=0, description="Tokens sent")
    completion_tokens: int = Field(default=0, description="Tokens of its answers")
    embedded_texts: int = Field(default=0, description="Texts that were embedded")
    cached: int = Field(default=0, description="Answers taken from the cache")


class StoreResponse(ResponseModel):
    """One result per text, in request order."""

    results: list[StoreOutcome] = Field(description="The outcome of each text or fact, in order")
    warnings: list[str] = Field(
        default_factory=list, description="About the request as a whole; no_facts says why nothing was stored"
    )
    usage: LlmUsage = Field(description="Model calls and tokens")
    timings_ms: dict[str, float] = Field(
        description="Milliseconds per stage, and in total", examples=[{"embed": 7.8, "total": 34.1}]
    )
    dry_run: bool = Field(default=False, description="Whether this was a dry run, which stores nothing")


class StoreBatchItem(ResponseModel):
    """The outcome of one item of a batch: its results or its error."""

    index: int = Field(description="Its index in the request, from 0")
    status: int = Field(description="The HTTP status of a single request", examples=[201])
    results: list[StoreOutcome] = Field(default_factory=list, description="As for a single store; empty when it failed")
    warnings: list[str] = Field(default_factory=list, description="As for a single store")
    error: BatchItemError | None = Field(default=None, description="Why it failed; null: it did not fail")


class StoreBatchResponse(ResponseModel):
    """One outcome per item."""

    results: list[StoreBatchItem] = Field(description="One per item, in order")
    succeeded: int = Field(description="Number of items that were stored or already known")
    failed: int = Field(description="Number of items that failed")
    usage: LlmUsage = Field(description="Model calls and tokens of all items")


def store_outcome(outcome: Outcome) -> StoreOutcome:
    """One outcome. A duplicate shows the existing memory; fields that were not computed are null."""
    draft = outcome.draft
    return StoreOutcome.of(
        outcome,
        id=outcome.memory_id,
        memory=outcome.text,
        old_memory=outcome.old_text,
        dedup=outcome.dedup,
        decision=DecisionEvidence.of(draft.evidence) if draft.evidence else None,
        **_annotation(draft),
        tags=list(draft.tags),
        tag_prefixes=list(draft.tag_prefixes),
        pii=PiiSummary(redactions=list(draft.redactions)),
        embedding=draft.embedding_status,
        enrichment="queued" if outcome.event is not Action.NONE else "none",
        summarized=draft.original_length is not None,
        original_length=draft.original_length,
        summarized_length=len(draft.clean) if draft.original_length is not None else None,
        role=draft.speech.role if draft.speech else None,
        entities={},
        warnings=list(draft.warnings),
        timings_ms=dict(draft.timings_ms),
    )


def _annotation(draft: Draft) -> dict[str, Any]:
    rated, kind = draft.importance, draft.kind
    return {
        "importance": rated.value if rated else None,
        "importance_level": rated.level if rated else None,
        "importance_band": importance.band(rated.value) if rated else None,
        "temporal": draft.temporal,
        "categories": list(draft.categories),
        "type": kind.type if kind else None,
        "type_confidence": kind.confidence if kind else None,
        "classification_source": kind.source if kind else None,
    }


def stage_timings(drafts: Sequence[Draft]) -> dict[str, float]:
    """Milliseconds per stage, of the slowest text: all texts of a request pass a stage together."""
    timings: dict[str, float] = {}
    for draft in drafts:
        for stage, spent in draft.timings_ms.items():
            timings[stage] = max(timings.get(stage, 0.0), spent)
    return timings
