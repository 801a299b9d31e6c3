"""The tables: every column, key and constraint by name. Indexes and partitions stand in service/db/sql.

Every tenant table starts its primary key with `workspace_id` and is under forced row-level security. No
relationships: nothing loads lazily, rows leave db/ as domain values.
"""

from service.db.tables.base import TERM_DIMENSIONS, Table
from service.db.tables.conversations import (
    ConversationLogRow,
    ConversationRow,
    MemorySourceRow,
    TurnRow,
    TurnVectorRow,
    UserProfileRow,
    WithdrawnSpanRow,
    WorkingItemRow,
)
from service.db.tables.entities import (
    EntityAliasRow,
    EntityEdgeRow,
    EntityEdgeSourceRow,
    EntityMergeRow,
    EntityRow,
    EntityVectorRow,
    MemoryEntityRow,
)
from service.db.tables.goals import GoalEdgeRow, GoalHistoryRow, GoalMemoryRow, GoalRow, GoalVectorRow
from service.db.tables.history import AuditLogRow, DecisionRow, ErasedMemoryRow, MemoryHistoryRow, ReviewRow
from service.db.tables.jobs import (
    EmbeddingCacheRow,
    IdempotencyRow,
    JobRow,
    JobRunRow,
    LlmCacheRow,
    OperationRow,
    ScheduleRow,
    WebhookDeliveryRow,
    WebhookRow,
)
from service.db.tables.memories import (
    EmbeddingGenerationRow,
    MemoryEdgeRow,
    MemoryRow,
    MemoryStatRow,
    MemoryVectorRow,
    TermStatRow,
)
from service.db.tables.procedures import (
    StrategyConversationRow,
    StrategyRow,
    StrategyToolRow,
    StrategyVectorRow,
    ToolInvocationRow,
    ToolRow,
)
from service.db.tables.tenants import ApiKeyRow, BudgetRow, ModelDayRow, TokenSecretRow, WorkspaceRow

__all__ = [
    "TERM_DIMENSIONS",
    "ApiKeyRow",
    "AuditLogRow",
    "BudgetRow",
    "ConversationLogRow",
    "ConversationRow",
    "DecisionRow",
    "EmbeddingCacheRow",
    "EmbeddingGenerationRow",
    "EntityAliasRow",
    "EntityEdgeRow",
    "EntityEdgeSourceRow",
    "EntityMergeRow",
    "EntityRow",
    "EntityVectorRow",
    "ErasedMemoryRow",
    "GoalEdgeRow",
    "GoalHistoryRow",
    "GoalMemoryRow",
    "GoalRow",
    "GoalVectorRow",
    "IdempotencyRow",
    "JobRow",
    "JobRunRow",
    "LlmCacheRow",
    "MemoryEdgeRow",
    "MemoryEntityRow",
    "MemoryHistoryRow",
    "MemoryRow",
    "MemorySourceRow",
    "MemoryStatRow",
    "MemoryVectorRow",
    "ModelDayRow",
    "OperationRow",
    "ReviewRow",
    "ScheduleRow",
    "StrategyConversationRow",
    "StrategyRow",
    "StrategyToolRow",
    "StrategyVectorRow",
    "Table",
    "TermStatRow",
    "TokenSecretRow",
    "ToolInvocationRow",
    "ToolRow",
    "TurnRow",
    "TurnVectorRow",
    "UserProfileRow",
    "WebhookDeliveryRow",
    "WebhookRow",
    "WithdrawnSpanRow",
    "WorkingItemRow",
    "WorkspaceRow",
]
