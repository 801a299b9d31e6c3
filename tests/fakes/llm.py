"""A language model in the process that answers by task and remembers what it was asked."""

from __future__ import annotations

import json
from typing import Any

from service.db.engine import holding
from service.errors import LlmError
from service.providers.protocols import Ask, Reply

DEFAULTS: dict[str, Any] = {
    "annotate": {"importance": 5, "temporal": "persistent", "valid_until": None, "categories": ["general"]},
    "classify": {"type": "Context", "confidence": 0.6},
    "decide": {"action": "add"},
    "summarise": "Short.",
}


class ScriptedLlm:
    """`ScriptedLlm(decide={...}, classify="no JSON", annotate=None)`: None makes that task fail."""

    model = "test:scripted"

    def __init__(self, **answers: Any) -> None:
        self.asked: list[Ask] = []
        self._answers = {**DEFAULTS, **answers}

    def of(self, task: str) -> list[Ask]:
        """What was asked for one task."""
        return [ask for ask in self.asked if ask.task == task]

    async def complete(self, ask: Ask) -> Reply:
        assert not holding(), "a model was awaited inside a transaction"
        self.asked.append(ask)
        answer = self._answers[ask.task]
        if answer is None:
            raise LlmError("The language model did not answer.")
        return Reply(answer if isinstance(answer, str) else json.dumps(answer), model=self.model)

    async def close(self) -> None:
        return None
