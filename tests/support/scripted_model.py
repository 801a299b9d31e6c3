"""An application whose language model is a scripted server that speaks the OpenAI API.

The script says which facts a message has and what happens to each fact. The client of the server is the product's own,
made from settings as in a deployment.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from httpx2 import AsyncClient
from pydantic import SecretStr

from service.kit.settings import Settings
from service.providers import choose
from service.providers.openai_client import ClientOptions
from service.providers.openai_llm import OpenAiLlm
from service.providers.presets import llm_endpoint
from service.providers.protocols import Llm
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.http_server import HttpRequest, ScriptedAnswer
from tests.fakes.openai_server import Content, OpenAiServer
from tests.support.application import with_llm

RETRIES, ONCE = 3, 0
"""How the model is asked again: as in a deployment, or never."""

NUMBERED = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
KNOWN = re.compile(r"^\((\d+)\) (.*)$", re.MULTILINE)
FENCED = re.compile(r"^-----\n(.*?)\n-----$", re.MULTILINE | re.DOTALL)
ADD: Sequence[Mapping[str, Any]] = ({"event": "ADD"},)


@dataclass
class ConversationScript:
    """`facts` by a part of the message; `decisions` by the fact, with the text of their target as "of". A message that
    is not listed has no facts, and a fact that is not listed is added. With each fact the extraction names the known
    memories that its decision is about."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    decisions: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def __call__(self, request: HttpRequest) -> Content:
        prompt = request.json["messages"][1]["content"]
        if request.json["model"] == "extract":  # the last block is the conversation, behind what helps to understand it
            said = FENCED.findall(prompt)[-1]
            facts: Sequence[Any] = next((facts for part, facts in self.facts.items() if part in said), [])
            known = {text: int(number) for number, text in KNOWN.findall(prompt)}
            return {"facts": [self._compared(each, known) for each in facts]}
        if request.json["model"] == "decide":
            shown = {text: number for number, text in NUMBERED.findall(prompt)}
            fact = FENCED.findall(prompt)[0]
            return {"items": [_numbered(each, shown) for each in self.decisions.get(fact, ADD)]}
        return {"type": "Context", "confidence": 0.5}

    def _compared(self, fact: Any, known: Mapping[str, int]) -> Any:
        if not isinstance(fact, str):
            return fact
        about = [each["of"] for each in self.decisions.get(fact, ()) if "of" in each]
        return {"text": fact, "known": [known[text] for text in about if text in known]}


def _numbered(operation: Mapping[str, Any], shown: Mapping[str, str]) -> dict[str, Any]:
    rest = {name: value for name, value in operation.items() if name != "of"}
    return {**rest, "id": shown[operation["of"]], "old_memory": operation["of"]} if "of" in operation else rest


def _llm_client(server: OpenAiServer, settings: Settings, retries: int) -> Llm:
    """The model client of a deployment. Each task has a model name of its own, by which the script tells them apart."""
    chosen: dict[str, Any] = {
        "llm_base_url": server.base_url,
        "llm_api_key": SecretStr("key"),
    }
    settings = settings.changed(**chosen)
    endpoint = llm_endpoint(settings)
    assert endpoint is not None, "a base URL switches the model on"
    endpoint = replace(endpoint, models={"extract": "extract", "decide": "decide", "classify": "classify"})
    options = ClientOptions(
        timeout_s=min(choose.LLM_ATTEMPT_S, settings.llm.timeout_s),
        concurrency=choose.CONCURRENCY,
        retries=retries,
    )
    return OpenAiLlm(endpoint, options)


@dataclass(frozen=True)
class ModelSetup:
    """A client of the application, the model server, and the resources of the application."""

    client: AsyncClient
    server: OpenAiServer
    resources: Resources

    def requests_of(self, task: str) -> list[Any]:
        """The bodies of the model's requests for one task."""
        return [body for body in self.server.chat.bodies if body["model"] == task]


@asynccontextmanager
async def with_scripted_model(
    resources: Resources,
    tenant: Tenant,
    answers: Callable[[HttpRequest], Content | ScriptedAnswer] | Content,
    settings: Settings | None = None,
    retries: int = RETRIES,
) -> AsyncIterator[ModelSetup]:
    """The application with a model that gives these answers."""
    settings = settings or resources.settings
    with OpenAiServer() as server:
        server.chat.default(answers)
        llm = _llm_client(server, settings, retries)
        own = replace(resources, settings=settings, llm=llm)
        async with with_llm(own, tenant, llm) as client:
            yield ModelSetup(client, server, own)
        await llm.close()
