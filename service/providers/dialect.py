"""Which fields of a request does this model not accept?

Servers differ by model more than a table can keep up with: reasoning models take no `temperature`, newer ones want
`max_completion_tokens`, old embedding models no `dimensions`. A server that refuses a field by name (400 with
`param`) is asked again without it, and that is remembered for the model as long as the process lives.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from service.providers.retry import CallFailed, Reason

T = TypeVar("T")

RENAMED: Mapping[str, str] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
OPTIONAL = frozenset({"temperature", "response_format", "dimensions", "encoding_format", *RENAMED})
"""Fields without which a request still means the same, though it may be answered less well."""


class Dialect:
    """What has been learned, per model."""

    def __init__(self) -> None:
        self._refused: dict[str, set[str]] = {}

    def speak(self, model: str, body: Mapping[str, object]) -> dict[str, object]:
        """`body` without the fields that `model` refused; a renamed field goes by its other name if that is open."""
        refused = self._refused.get(model, set())
        spoken = {name: value for name, value in body.items() if name not in refused}
        for name in refused & body.keys() & RENAMED.keys():
            if RENAMED[name] not in refused:
                spoken[RENAMED[name]] = body[name]
        return spoken

    async def ask(self, body: Mapping[str, object], send: Callable[[dict[str, object]], Awaitable[T]]) -> T:
        """The answer of `send`, repeated without each field that gets refused. Raises CallFailed."""
        model = str(body.get("model"))
        while True:
            try:
                return await send(self.speak(model, body))
            except CallFailed as failed:
                if not self._learn(model, failed):
                    raise

    def _learn(self, model: str, failed: CallFailed) -> bool:
        refused = self._refused.setdefault(model, set())
        name = failed.parameter
        if failed.reason is not Reason.REFUSED or name not in OPTIONAL or name in refused:
            return False
        refused.add(name)
        return True
