"""An agent of the OpenAI Agents SDK whose session is a conversation in Loxodon, with a tool that recalls other ones.

Needs `pip install './clients/python[openai-agents]'`, LOXODON_URL, LOXODON_API_KEY, and OPENAI_API_KEY (or
OPENAI_BASE_URL).
"""

from __future__ import annotations

import asyncio
import sys

from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled

from loxodon import AsyncMemory
from loxodon.integrations.openai_agents import LoxodonSession

USER = "olga"


async def main() -> None:
    set_tracing_disabled(disabled=True)
    set_default_openai_api("chat_completions")
    async with AsyncMemory() as memory:

        @function_tool
        async def recall(about: str) -> str:
            """What is known of the user about something, from all conversations."""
            return (await memory.recall(about, user_id=USER, format="markdown"))["markdown"] or "nothing"

        agent = Agent(name="Assistant", instructions="Be brief.", model="gpt-4o-mini", tools=[recall])
        session = LoxodonSession("chat-17", memory, user_id=USER)
        for question in sys.argv[1:] or ["My name is Olga."]:
            result = await Runner.run(agent, question, session=session)
            print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main())
