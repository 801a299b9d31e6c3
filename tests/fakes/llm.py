"""A language model in the process that answers by task and remembers what it was asked."""

from __future__ import annotations

import json
from typing import Any

from service.domain.errors import LlmError
from service.postgres.engine import in_transaction
from service.providers.protocols import LlmReply, LlmRequest

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
        self.requests: list[LlmRequest] = []
        self._answers = {**DEFAULTS, **answers}

    def of(self, task: str) -> list[LlmRequest]:
        """What was asked for one task."""
        return [request for request in self.requests if request.task == task]

    async def complete(self, request: LlmRequest) -> LlmReply:
        assert not in_transaction(), "a model was awaited inside a transaction"
        self.requests.append(request)
        answer = self._answers[request.task]
        if answer is None:
            raise LlmError("The language model did not answer.")
        return LlmReply(answer if isinstance(answer, str) else json.dumps(answer), model=self.model)

    async def close(self) -> None:
        return None
