"""Words of the audit log: all there are, so a filter that names another one is misspelt."""

from __future__ import annotations

from typing import Literal

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
