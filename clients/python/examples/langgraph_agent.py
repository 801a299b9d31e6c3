"""A LangGraph agent that remembers what its user tells it, between threads and restarts.

Needs `pip install './clients/python[langgraph]' openai`, LOXODON_URL, LOXODON_API_KEY, and OPENAI_API_KEY
(or OPENAI_BASE_URL).
"""

from __future__ import annotations

import sys
from typing import TypedDict
from uuid import uuid4

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore
from openai import OpenAI

from loxodon import Memory
from loxodon.integrations.langgraph import LoxodonStore

model = OpenAI()


class Talk(TypedDict):
    user_id: str
    message: str
    answer: str


def answer(state: Talk, *, store: BaseStore) -> dict[str, str]:
    """Asks the model with what is known about the user, and keeps what the user told. A question tells nothing: kept,
    it would be the best match for itself."""
    mine = ("memories", state["user_id"])
    known = "\n".join(item.value["text"] for item in store.search(mine, query=state["message"], limit=5))
    reply = model.chat.completions.create(
        model="gpt-4o-mini",
        messages=[
            {"role": "system", "content": f"What you know about the user:\n{known}"},
            {"role": "user", "content": state["message"]},
        ],
    )
    if not state["message"].endswith("?"):
        store.put(mine, uuid4().hex, {"text": state["message"]})
    return {"answer": reply.choices[0].message.content or ""}


def main() -> None:
    message = " ".join(sys.argv[1:]) or "I drink tea in the morning."
    with Memory() as memory:
        builder = StateGraph(Talk)
        builder.add_node("answer", answer)
        builder.add_edge(START, "answer")
        builder.add_edge("answer", END)
        graph = builder.compile(store=LoxodonStore(memory, user_at=1, fields=["text"]))
        print(graph.invoke({"user_id": "lena", "message": message, "answer": ""})["answer"])


if __name__ == "__main__":
    main()
