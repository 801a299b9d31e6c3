"""Installs the frameworks in an environment of their own, checks the types of the bindings, walks through them, and
runs the examples of the Python client with a scripted model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx

from bench.target import Service
from tests.fakes.openai_server import OpenAiServer
from tests.support import commands

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "python"
WALKS = ROOT / "tests" / "frameworks" / "walks"
PINNED = ROOT / "requirements" / "frameworks.txt"
ENVIRONMENT = ROOT / "build" / "frameworks"
PYTHON = str(ENVIRONMENT / "bin" / "python")


def run(*command: str, service: Service | None = None, model: str = "") -> str:
    """`model`: the URL of the one that the examples ask."""
    more = {"PYTHONPATH": str(CLIENT), "MYPYPATH": str(CLIENT), "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": model}
    if service is not None:
        more |= {"LOXODON_URL": service.url, "LOXODON_API_KEY": service.key}
    return commands.run(command, ROOT, more)


def install() -> None:
    """Makes build/frameworks hold what requirements/frameworks.txt pins, unless it does."""
    commands.install_python(ENVIRONMENT, PINNED)


def check_types() -> None:
    files = [
        str(CLIENT / "loxodon"),
        *(str(each) for each in (*WALKS.glob("*.py"), *(CLIENT / "examples").glob("*.py"))),
    ]
    run(PYTHON, "-m", "mypy", "--config-file=", "--strict", "--cache-dir", str(ENVIRONMENT / "mypy"), *files)


def walk(name: str, service: Service) -> None:
    run(PYTHON, str(WALKS / f"{name}.py"), service=service)


def example(name: str, *said: str, service: Service, model: OpenAiServer) -> str:
    """What the example printed."""
    return run(PYTHON, str(CLIENT / "examples" / f"{name}.py"), *said, service=service, model=model.base_url).strip()


def langgraph(service: Service, model: OpenAiServer) -> None:
    walk("langgraph_store", service)
    model.chat.reply("Noted.")
    assert example("langgraph_agent", "I drink tea in the morning.", service=service, model=model) == "Noted."
    model.chat.reply("Tea.")
    assert example("langgraph_agent", "What do I drink?", service=service, model=model) == "Tea."
    assert "I drink tea in the morning." in model.chat.bodies[-1]["messages"][0]["content"]


def openai_agents(service: Service, model: OpenAiServer) -> None:
    walk("openai_agents_session", service)
    model.chat.reply("Hello Alice.")
    example("openai_agents_session", "My name is Alice.", service=service, model=model)
    model.chat.call_tool("recall", {"about": "the name"})
    model.chat.reply("Alice.")
    assert example("openai_agents_session", "What is my name?", service=service, model=model) == "Alice."
    before = [each.get("content") for each in model.chat.bodies[-1]["messages"]]
    assert "My name is Alice." in before
    assert "Hello Alice." in str(before)


def llama_index(service: Service, model: OpenAiServer) -> None:
    model.chat.default("I see, please go on and tell me some more about that, I am all ears today.")
    said = (
        "I moved to Lisbon last month, I work at Acme now.",
        *(f"The weather was number {number} on my list of things to talk about here." for number in range(5)),
        "In which city do I live now?",
    )
    example("llama_index_memory", *said, service=service, model=model)
    asked = model.chat.bodies[-1]["messages"]
    told = "".join(str(each["content"]) for each in asked if each["role"] == "system")
    assert "Lisbon" in told, asked


def pydantic_ai(service: Service, model: OpenAiServer) -> None:
    model.chat.call_tool("remember", {"fact": "Alice is allergic to peanuts."})
    model.chat.reply("I will remember.")
    assert example("pydantic_ai_agent", service=service, model=model) == "I will remember."
    model.chat.call_tool("recall", {"question": "What must she not eat?"})
    model.chat.reply("Peanuts.")
    assert example("pydantic_ai_agent", "What must I not eat?", service=service, model=model) == "Peanuts."
    assert "peanuts" in str(model.chat.bodies[-1]["messages"][-1]["content"])
    found = httpx.get(
        f"{service.url}/v1/memories/search",
        params={"query": "peanuts", "user_id": "pia", "limit": 1},
        headers={"Authorization": f"Bearer {service.key}"},
    )
    assert "peanuts" in found.json()["results"][0]["memory"]


FRAMEWORKS: dict[str, Callable[[Service, OpenAiServer], None]] = {
    "langgraph": langgraph,
    "openai-agents": openai_agents,
    "llama-index": llama_index,
    "pydantic-ai": pydantic_ai,
}
