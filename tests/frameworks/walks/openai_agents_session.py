"""The session of the OpenAI Agents SDK: its protocol, beside the SDK's own SQLiteSession, and what Loxodon adds."""

from __future__ import annotations

import asyncio
from typing import Any

from agents.memory import Session, SQLiteSession

from loxodon import AsyncMemory
from loxodon.integrations.openai_agents import LoxodonSession

ITEMS: list[Any] = [
    {"role": "user", "content": "I live in Oslo."},
    {"id": "m1", "type": "message", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "Nice.", "annotations": [], "logprobs": []}]},
    {"role": "user", "content": [{"type": "input_text", "text": "This?"}, {"type": "input_text", "text": "Or that?"}]},
    {"type": "function_call", "call_id": "c1", "name": "sky", "arguments": '{"at": "Oslo", "days": 2}', "id": "f1"},
    {"type": "function_call_output", "call_id": "c1", "output": "Rain, 7 °C\n"},
    {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "thinking"}]},
    {"role": "user", "content": "Yes."},
    {"role": "user", "content": "Yes."},
    {"role": "user", "content": ""},
]  # fmt: skip


async def main() -> None:
    async with AsyncMemory() as memory:
        session = LoxodonSession("s1", memory, user_id="oda")
        assert isinstance(session, Session)
        model = SQLiteSession("s1")
        for each in (session, model):
            assert await each.get_items() == []
            assert await each.pop_item() is None
            await each.clear_session()
            await each.add_items([])
            await each.add_items(ITEMS[:4])
            await each.add_items(ITEMS[4:])
        for limit in (None, 0, 1, 3, 100):
            assert await session.get_items(limit) == await model.get_items(limit), limit
        for _ in range(3):
            assert await session.pop_item() == await model.pop_item()
        assert await session.get_items() == await model.get_items() == ITEMS[:6]
        again = LoxodonSession("s1", memory, user_id="oda")
        assert await again.get_items() == ITEMS[:6]
        assert await LoxodonSession("s1", memory, user_id="pia").get_items() == []

        found = await memory.conversations.search("Where do I live?", user_id="oda")
        assert found["results"][0]["content"] == "I live in Oslo."
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items(ITEMS[6:8])
        assert await session.get_items() == ITEMS[6:8]

        other = LoxodonSession("s2", memory, user_id="oda")
        await asyncio.gather(*(other.add_items([{"role": "user", "content": f"Line {number}"}]) for number in range(8)))
        assert len(await other.get_items()) == 8
        await other.clear_session()
        await other.add_items([{"role": "user", "content": "My mail is oda@example.org"}])
        assert "oda@" not in str(await other.get_items())
    print("openai agents session: ok")


if __name__ == "__main__":
    asyncio.run(main())
