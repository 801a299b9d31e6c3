"""LlamaIndex's memory with a block that is Loxodon: what leaves the short-term memory is recalled when it matters.

Needs `pip install './clients/python[llama-index]' openai`, LOXODON_URL, LOXODON_API_KEY, and OPENAI_API_KEY (or
OPENAI_BASE_URL).
"""

from __future__ import annotations

import asyncio
import sys

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from openai import AsyncOpenAI

from loxodon import AsyncMemory
from loxodon.integrations.llama_index import LoxodonMemoryBlock


async def main() -> None:
    model = AsyncOpenAI()
    async with AsyncMemory() as loxodon:
        # the short-term memory is tiny here, so that the block has something to do
        memory = Memory.from_defaults(
            session_id="chat-17",
            token_limit=600,
            token_flush_size=10,
            chat_history_token_ratio=0.05,
            memory_blocks=[LoxodonMemoryBlock(memory=loxodon, user_id="lara")],
            tokenizer_fn=str.split,
        )
        for question in sys.argv[1:] or ["I moved to Lisbon last month, I work at Acme now."]:
            await memory.aput(ChatMessage(role="user", content=question))
            history = await memory.aget()
            reply = await model.chat.completions.create(
                model="gpt-4o-mini",
                messages=[{"role": each.role.value, "content": each.content or ""} for each in history],  # type: ignore[misc]
            )
            said = reply.choices[0].message.content or ""
            await memory.aput(ChatMessage(role="assistant", content=said))
            print(said)


if __name__ == "__main__":
    asyncio.run(main())
