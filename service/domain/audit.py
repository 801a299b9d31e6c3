"""Entries of the audit log, and its words: all there are, so a filter that names another one is misspelt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

Operation = Literal[
    "store", "update", "delete", "restore", "promote", "associate", "dissociate", "undo", "review_accepted",
    "review_rejected", "purge", "reset", "open", "store_turn", "upsert_entity", "delete_entity",
    "relate_entities", "unrelate_entities", "merge_entities", "unmerge_entities", "goal_add", "goal_update",
    "goal_complete", "goal_abandon", "goal_block", "goal_reopen", "goal_tie", "goal_untie", "goal_delete",
    "strategy_add", "strategy_reinforce", "strategy_delete", "retrieve", "record_tool", "set_working",
    "delete_working", "create_api_key", "update_api_key", "rotate_api_key", "revoke_api_key", "create_token",
    "run_job", "retry_job", "cancel_job", "archive", "optimize", "create_webhook", "update_webhook",
    "rotate_webhook", "delete_webhook",
]  # fmt: skip
"""What was done. A word stays here for as long as the log may hold it, also when nothing writes it any more."""

Subject = Literal[
    "semantic", "episodic", "procedural", "working", "goal", "profile", "entity", "timeline", "api_key", "job",
    "webhook",
]  # fmt: skip
"""What it was done to. A message kept word for word is `episodic`, as turns are; changes of entities are `semantic`,
searches for them `entity`."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """An entry as stored."""

    id: UUID
    recorded_at: datetime
    operation: str
    memory_type: str | None
    affected_ids: list[UUID]
    request_id: str | None
    api_key_id: UUID | None
    user_id: str | None
    session_id: str | None
    conversation_id: UUID | None
    source_channel: str | None
    target_channels: list[str]
    query_text: str | None
    result_count: int | None
    latency_ms: float | None
    success: bool
    error_message: str | None
    promoted_from_channel: str | None
    promotion_confidence: float | None
    promotion_access_count: int | None
    promotion_conversation_count: int | None
    config_snapshot: Mapping[str, Any]
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries; None does not filter. `since` inclusive, `until` exclusive."""

    operation: Operation | None = None
    memory_type: Subject | None = None
    memory_id: UUID | None = None
    user_id: str | None = None
    session_id: str | None = None
    conversation_id: UUID | None = None
    channel: str | None = None
    request_id: str | None = None
    api_key_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
