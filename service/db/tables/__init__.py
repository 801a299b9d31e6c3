"""The tables: every column, key and constraint by name. Indexes and partitions stand in service/db/sql.

Every tenant table starts its primary key with `workspace_id` and is under forced row-level security. No
relationships: nothing loads lazily, rows leave db/ as domain values.
"""

from service.db.tables.base import TERM_DIMENSIONS, Table
from service.db.tables.conversations import (
    Conversation,
    ConversationLog,
    MemorySource,
    Turn,
    TurnVector,
    UserProfile,
    WorkingItem,
)
from service.db.tables.entities import (
    Entity,
    EntityAlias,
    EntityEdge,
    EntityEdgeSource,
    EntityMerge,
    EntityVector,
    MemoryEntity,
)
from service.db.tables.goals import GoalEdge, GoalHistory, GoalMemory, GoalRow, GoalVector
from service.db.tables.happened import AuditLog, Decision, MemoryHistory, Review
from service.db.tables.memories import EmbeddingGeneration, Memory, MemoryEdge, MemoryStat, MemoryVector, TermStat
from service.db.tables.procedures import (
    StrategyConversation,
    StrategyRow,
    StrategyTool,
    StrategyVector,
    ToolInvocation,
    ToolRow,
)
from service.db.tables.tenants import ApiKey, Workspace
from service.db.tables.work import EmbeddingCache, Idempotency, Job, JobRun, LlmCache, Operation, Schedule

__all__ = [
    "TERM_DIMENSIONS",
    "ApiKey",
    "AuditLog",
    "Conversation",
    "ConversationLog",
    "Decision",
    "EmbeddingCache",
    "EmbeddingGeneration",
    "Entity",
    "EntityAlias",
    "EntityEdge",
    "EntityEdgeSource",
    "EntityMerge",
    "EntityVector",
    "GoalEdge",
    "GoalHistory",
    "GoalMemory",
    "GoalRow",
    "GoalVector",
    "Idempotency",
    "Job",
    "JobRun",
    "LlmCache",
    "Memory",
    "MemoryEdge",
    "MemoryEntity",
    "MemoryHistory",
    "MemorySource",
    "MemoryStat",
    "MemoryVector",
    "Operation",
    "Review",
    "Schedule",
    "StrategyConversation",
    "StrategyRow",
    "StrategyTool",
    "StrategyVector",
    "Table",
    "TermStat",
    "ToolInvocation",
    "ToolRow",
    "Turn",
    "TurnVector",
    "UserProfile",
    "WorkingItem",
    "Workspace",
]
