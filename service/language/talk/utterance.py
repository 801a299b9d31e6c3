"""A message: what one speaker said at one time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from service.domain.text import CleanText

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
USER, ASSISTANT = "User", "Assistant"
SILENT_ROLES = frozenset({"system", "developer", "tool", "function"})
ASSISTANT_ROLES = frozenset({"assistant", "ai", "model", "bot"})


@dataclass(frozen=True, slots=True)
class Utterance:
    """One redacted message. `said_at`: aware, the moment that relative dates mean. `stands_alone`: it is kept without a
    quotation of what it refers to."""

    role: str
    text: CleanText
    name: str | None = None
    said_at: datetime = EPOCH
    stands_alone: bool = False

    @property
    def speaker(self) -> str:
        """The name in front of a kept message."""
        return self.name or (ASSISTANT if self.by_assistant else USER)

    @property
    def by_assistant(self) -> bool:
        return self.role.lower() in ASSISTANT_ROLES

    @property
    def is_silent(self) -> bool:
        """Whether the message comes from a system or a tool, so that nobody says it."""
        return self.role.lower() in SILENT_ROLES
