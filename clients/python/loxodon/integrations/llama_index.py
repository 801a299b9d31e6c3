"""A block for LlamaIndex's memory, which gives an agent what Loxodon knows.

    from loxodon import AsyncMemory
    from loxodon.integrations.llama_index import LoxodonMemoryBlock

    block = LoxodonMemoryBlock(memory=AsyncMemory(), user_id="alice")
    agent_memory = Memory.from_defaults(session_id="chat-17", memory_blocks=[block])

What leaves the short-term memory is stored, and read for facts; before an answer, what bears on the last words of the
user is recalled.
"""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.memory import BaseMemoryBlock

from loxodon import AsyncMemory, types


class LoxodonMemoryBlock(BaseMemoryBlock[str]):
    """`max_tokens`: how much it may give. `infer`: false keeps messages as they are instead of reading facts."""

    name: str = "loxodon"
    description: str | None = "What is known of the user from earlier conversations."
    priority: int = 1
    memory: AsyncMemory
    user_id: str | None = None
    agent_id: str | None = None
    max_tokens: int = 1000
    infer: bool = True

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """What bears on the last words of the user, as a text; empty without any."""
        asked = next((each.content for each in reversed(messages or []) if each.role.value == "user"), None)
        if not asked or not asked.strip():
            return ""
        found = await self._memory_of(asked)
        return (found["markdown"] or "").strip()

    async def _memory_of(self, asked: str) -> types.RecallResponse:
        return await self.memory.recall(
            asked[-20_000:],
            user_id=self.user_id,
            agent_id=self.agent_id,
            max_tokens=self.max_tokens,
            format="markdown",
        )

    async def _aput(self, messages: list[ChatMessage]) -> None:
        by_session: dict[str | None, list[types.MessageInput]] = {}
        for each in messages:
            if each.content and each.content.strip():
                session = each.additional_kwargs.get("session_id")
                by_session.setdefault(session, []).append({"role": each.role.value, "content": each.content})
        for session, said in by_session.items():
            await self.memory.add(
                said, user_id=self.user_id, agent_id=self.agent_id, session_id=session, infer=self.infer
            )

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Leaves out lines from the end: the best come first."""
        lines = content.splitlines()
        dropped = 0
        while lines and dropped < tokens_to_truncate:
            dropped += len(lines.pop().encode()) // 4 + 1
        return "\n".join(lines) or None
