"""Decisions about memories, changes in their history, and the number of rows of a list, as read and as answered."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from service.domain.decision import Action
from service.domain.scope import Scope
from service.http.schemas import Id, OfAgent, OfRun, OfUser, ResponseModel, Time


class DecisionResponse(ResponseModel):
    """A decision with its evidence."""

    id: Id = Field(description="UUID of the decision")
    memory_id: Id | None = Field(description="UUID of the memory it is about; null: none")
    event: Action | None = Field(description="What it did: ADD, UPDATE, DELETE (archived) or NONE; null: not recorded")
    source: str = Field(description="rules, llm, or review for a person")
    model: str = Field(description="Which model, or which version of the rules; person for a review")
    prompt_sha256: str | None = Field(description="SHA-256 of the prompt, in hexadecimal; null: no model was called")
    candidates: list[str] = Field(description="UUIDs of the memories that were considered")
    reply: str | None = Field(description="The model's answer, verbatim; null: no model was called")
    verdict: str = Field(description="As given by the source: ADD, UPDATE, DELETE, NONE, accept and so on")
    reason: str = Field(description="Why, in words; may be empty")
    rejected: bool = Field(description="Whether the model's answer was unusable and the rules decided")
    state: Literal["applied", "rejected", "undone"] = Field(description="applied; rejected: unusable; or undone")
    before: str | None = Field(description="The memory's text before; null: none, or unchanged")
    after: str | None = Field(description="The memory's text after; null: none, or unchanged")
    ruling_id: Id | None = Field(description="UUID shared by decisions that can only be undone together; null: none")
    history_id: Id | None = Field(description="UUID of its history entry; null: it changed nothing")
    created_at: Time = Field(description="When it was made")
    undone_at: Time | None = Field(description="When it was undone; null: not undone")


class StoredDecision(DecisionResponse):
    """A decision, and whose memory it is about."""

    scope: Scope


class MemoryHistoryItem(ResponseModel):
    """One change of a memory; its result was in force in the half-open [recorded_from, recorded_to)."""

    id: Id = Field(description="UUID of the entry")
    memory_id: Id = Field(description="UUID of the memory")
    event: Action = Field(description="What happened; DELETE: deleted, or archived by the curator")
    old_memory: str | None = Field(description="The text before; null: none, or purged")
    new_memory: str | None = Field(description="The text after; null: deleted or purged")
    is_deleted: bool = Field(description="Whether `event` is DELETE")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    timestamp: Time = Field(description="When the change was recorded; equal to recorded_from")
    recorded_from: Time = Field(description="When the change was recorded")
    recorded_to: Time | None = Field(description="When the next change was recorded; null: none since")


class TotalCount(ResponseModel):
    """Number of matches: exact up to 10,000, an estimate above."""

    value: int = Field(description="Number of matches")
    is_exact: bool = Field(description="true: counted; false: above 10,000, estimated by the planner")
