"""Jobs, their runs and timetable, operations, stored responses, and caches."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    SmallInteger,
    String,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from service.db.tables.base import (
    Table,
    child_of,
    empty_object,
    empty_words,
    part_of_key,
    set_now,
)
from service.db.vectors import Half


class JobRow(Table):
    """A job. Lower `priority` goes first; a running one belongs to `worker` until `lease_until`. `started_at`: when its
    first attempt began. `progress`: done and total of a long one. `wall`: the one that its request stood behind."""

    __tablename__ = "job"
    __table_args__ = (CheckConstraint("state IN ('ready', 'running', 'done', 'dead', 'cancelled')", "state"),)

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    kind: Mapped[str] = mapped_column(String(50))
    memory_id: Mapped[UUID | None]
    payload: Mapped[dict[str, Any]] = empty_object()
    state: Mapped[str] = mapped_column(String(9), server_default=text("'ready'::character varying"))
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    run_after: Mapped[datetime] = set_now()
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    max_attempts: Mapped[int]
    worker: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    last_error: Mapped[str | None]
    created_at: Mapped[datetime] = set_now()
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    progress: Mapped[dict[str, Any] | None]
    wall: Mapped[dict[str, Any] | None] = mapped_column(
        server_default=text("(NULLIF(current_setting('loxodon.wall_json'::text, true), ''::text))::jsonb")
    )


class JobRunRow(Table):
    """A run of a recurring or requested job, under the job's id. Runs of the whole service belong to the nil
    workspace."""

    __tablename__ = "job_run"
    __table_args__ = (
        CheckConstraint("reason IN ('schedule', 'request')", "reason"),
        CheckConstraint("state IN ('queued', 'running', 'done', 'failed', 'cancelled')", "state"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    name: Mapped[str] = mapped_column(String(50))
    reason: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(9), server_default=text("'queued'::character varying"))
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    worker: Mapped[str | None]
    counts: Mapped[dict[str, Any] | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime] = set_now()
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class ScheduleRow(Table):
    """When a recurring job is due next, for all workspaces. Locked by the worker that starts it. `interval_s`:
    seconds."""

    __tablename__ = "schedule"
    __table_args__ = (CheckConstraint("interval_s > 0", "interval_s"),)

    name: Mapped[str] = mapped_column(String(50), primary_key=True)
    interval_s: Mapped[float]
    last_run: Mapped[datetime | None]
    next_run: Mapped[datetime] = set_now()
    created_at: Mapped[datetime] = set_now()


class OperationRow(Table):
    """A request that is answered later (docs/decisions/027-async-answers.md)."""

    __tablename__ = "operation"
    __table_args__ = (CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", "state"),)

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    kind: Mapped[str] = mapped_column(String(50))
    state: Mapped[str] = mapped_column(String(8))
    request: Mapped[dict[str, Any]] = empty_object()
    progress: Mapped[dict[str, Any] | None]
    result: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime] = set_now()
    finished_at: Mapped[datetime | None]
    wall: Mapped[str | None] = mapped_column(
        server_default=text("NULLIF(current_setting('loxodon.wall_digest'::text, true), ''::text)")
    )


class IdempotencyRow(Table):
    """A request by its Idempotency-Key, with the response that a repetition gets
    (docs/decisions/007-idempotency.md)."""

    __tablename__ = "idempotency"

    workspace_id: Mapped[UUID] = part_of_key()
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    status: Mapped[int | None] = mapped_column(SmallInteger)
    body: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime] = set_now()
    expires_at: Mapped[datetime]
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]


class LlmCacheRow(Table):
    """An answer of a language model, by the hash of its prompt."""

    __tablename__ = "llm_cache"

    workspace_id: Mapped[UUID] = part_of_key()
    prompt_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    task: Mapped[str] = mapped_column(String(50))
    model: Mapped[str]
    answer: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = set_now()
    expires_at: Mapped[datetime]


class EmbeddingCacheRow(Table):
    """A vector of an embedder behind a network, by the hash of its text."""

    __tablename__ = "embedding_cache"

    workspace_id: Mapped[UUID] = part_of_key()
    model: Mapped[str] = mapped_column(primary_key=True)
    text_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = set_now()


class WebhookRow(Table):
    """Where changes are sent to; `position` and `seq`: up to where in the change feed deliveries have been made."""

    __tablename__ = "webhook"

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    url: Mapped[str]
    description: Mapped[str | None]
    events: Mapped[list[str]] = empty_words()
    enabled: Mapped[bool] = mapped_column(server_default=text("true"))
    disabled_reason: Mapped[str | None]
    secret: Mapped[str]
    old_secret: Mapped[str | None]
    old_secret_until: Mapped[datetime | None]
    position: Mapped[int] = mapped_column(BigInteger)
    seq: Mapped[int] = mapped_column(BigInteger)
    failures: Mapped[int] = mapped_column(server_default=text("0"))
    failing_since: Mapped[datetime | None]
    retry_at: Mapped[datetime | None]
    delivered_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = set_now()


class WebhookDeliveryRow(Table):
    """A change that is sent to a webhook, and how that went. What it says is read from history when it is sent."""

    __tablename__ = "webhook_delivery"
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'delivered', 'dead', 'dropped')", "state"),
        child_of("webhook", "webhook_id"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    webhook_id: Mapped[UUID]
    position: Mapped[int] = mapped_column(BigInteger)
    seq: Mapped[int] = mapped_column(BigInteger)
    event: Mapped[str] = mapped_column(String(20))
    memory_id: Mapped[UUID]
    state: Mapped[str] = mapped_column(String(9), server_default=text("'waiting'::character varying"))
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    status: Mapped[int | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime] = set_now()
    attempted_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
