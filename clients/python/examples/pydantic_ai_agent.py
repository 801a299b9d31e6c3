"""A Pydantic AI agent with two tools: remember and recall.

Needs `pip install ./clients/python "pydantic-ai-slim[openai]"`, LOXODON_URL, LOXODON_API_KEY, and OPENAI_API_KEY (or
OPENAI_BASE_URL).
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel

from loxodon import AsyncMemory


@dataclass
class Who:
    memory: AsyncMemory
    user_id: str


agent = Agent(
    OpenAIChatModel("gpt-4o-mini"),
    deps_type=Who,
    instructions="Remember what the user tells of themselves; recall it before you answer.",
)


@agent.tool
async def remember(ctx: RunContext[Who], fact: str) -> str:
    """Keeps a fact about the user, in one sentence."""
    stored = await ctx.deps.memory.add(fact, user_id=ctx.deps.user_id)
    return stored["results"][0]["event"]


@agent.tool
async def recall(ctx: RunContext[Who], question: str) -> str:
    """What is known of the user that bears on a question."""
    found = await ctx.deps.memory.recall(question, user_id=ctx.deps.user_id, format="markdown")
    return found["markdown"] or "nothing"


async def main() -> None:
    async with AsyncMemory() as memory:
        result = await agent.run(
            " ".join(sys.argv[1:]) or "I am allergic to peanuts.", deps=Who(memory=memory, user_id="pia")
        )
        print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
