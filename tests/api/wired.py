"""An application whose language model sits behind a real socket and speaks the OpenAI API.

The model is scripted in the words of the scenario: which facts a message holds, and what happens to a fact. The client
that asks it is the product's own, put together from settings as a deployment does it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from httpx2 import AsyncClient
from pydantic import SecretStr

from service.providers.choose import open_llm
from service.providers.protocols import Llm
from service.resources import Resources
from service.settings import Settings
from tests.api.conftest import with_llm
from tests.conftest import Tenant
from tests.fakes.http_server import HttpRequest
from tests.fakes.openai_server import Content, OpenAiServer

NUMBERED = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
FENCED = re.compile(r"^-----\n(.*?)\n-----$", re.MULTILINE | re.DOTALL)
ADD: Sequence[Mapping[str, Any]] = ({"event": "ADD"},)


@dataclass
class Mind:
    """`facts` by a part of the message; `rulings` by the fact, their targets named by text as "of". What nothing was
    said about holds no facts, and is added."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    rulings: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def __call__(self, request: HttpRequest) -> Content:
        said = request.json["messages"][1]["content"]
        if request.json["model"] == "extract":
            return {"facts": next((facts for part, facts in self.facts.items() if part in said), [])}
        if request.json["model"] == "decide":
            shown = {text: number for number, text in NUMBERED.findall(said)}
            fact = FENCED.findall(said)[0]
            return {"items": [_numbered(each, shown) for each in self.rulings.get(fact, ADD)]}
        return {"type": "Context", "confidence": 0.5}


def _numbered(operation: Mapping[str, Any], shown: Mapping[str, str]) -> dict[str, Any]:
    rest = {name: value for name, value in operation.items() if name != "of"}
    return {**rest, "id": shown[operation["of"]], "old_memory": operation["of"]} if "of" in operation else rest


def _wire_llm(server: OpenAiServer, settings: Settings) -> Llm:
    """The deployment's model at this server; each task has a model of its own, so that a script can tell them apart."""
    chosen: dict[str, Any] = {
        "llm_base_url": server.base_url,
        "llm_api_key": SecretStr("key"),
        "extraction_model": "extract",
        "decision_model": "decide",
        "classifier_model": "classify",
    }
    found = open_llm(settings.model_copy(update=chosen))
    assert found is not None, "a base URL switches the model on"
    return found


@dataclass(frozen=True)
class Wire:
    """A client of the application, the server that its model is asked at, and what the application works with."""

    client: AsyncClient
    server: OpenAiServer
    resources: Resources

    def asked(self, task: str) -> list[Any]:
        """The bodies of the model's requests for one task."""
        return [body for body in self.server.chat.bodies if body["model"] == task]


@asynccontextmanager
async def wired(
    resources: Resources,
    tenant: Tenant,
    answers: Callable[[HttpRequest], Content] | Content,
    settings: Settings | None = None,
) -> AsyncIterator[Wire]:
    """The application with a model that answers this, under these settings."""
    settings = settings or resources.settings
    with OpenAiServer() as server:
        server.chat.default(answers)
        llm = _wire_llm(server, settings)
        own = replace(resources, settings=settings, llm=llm)
        async with with_llm(own, tenant, llm) as client:
            yield Wire(client, server, own)
        await llm.close()
