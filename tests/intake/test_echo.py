"""An agent that repeats what it recalled makes nothing new of it."""

from __future__ import annotations

import pytest
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.conversing import events, known, tell
from tests.support.scripted_model import ConversationScript, with_scripted_model

FACTS = ["User lives in Oslo", "User likes green tea", "User's sister Una is a pilot"]
ALL_OF_IT = "I live in Oslo. I like green tea. My sister Una is a pilot."
SAID_BACK = [
    "As I remember, you live in Oslo.",
    "You live in Oslo and like green tea.",
    "I know that you like green tea, and your sister Una is a pilot.",
    "So you live in Oslo, you like green tea and your sister Una is a pilot.",
]
THANKS = ["What is the weather like?", "Thanks!", "Yes, exactly.", "Right, thank you."]


def talk(said: str, reply: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": said}, {"role": "user", "content": reply}]


@pytest.mark.parametrize("said", SAID_BACK)
@pytest.mark.parametrize("reply", THANKS)
async def test_offline_nothing_new_comes_of_it(client: AsyncClient, said: str, reply: str) -> None:
    await tell(client, ALL_OF_IT)
    before = sorted(await known(client))
    assert set(events(await tell(client, talk(said, reply)))) <= {"NONE"}
    assert sorted(await known(client)) == before


@pytest.mark.parametrize(
    ("said_back", "made"),
    [
        (SAID_BACK[1], "User lives in Oslo and likes green tea"),
        (SAID_BACK[2], "User's sister Una is a pilot, likes green tea"),
        ("Oslo is where your home is, so let us look there.", "Oslo is where user's home is"),
    ],
)
async def test_a_model_that_takes_it_for_facts_is_not_believed(
    resources: Resources, tenant: Tenant, said_back: str, made: str
) -> None:
    mind = ConversationScript(facts={"My sister Una": FACTS, said_back: [made]})
    async with with_scripted_model(resources, tenant, mind) as scripted:
        await tell(scripted.client, ALL_OF_IT)
        before = len(scripted.requests_of("decide"))
        assert set(events(await tell(scripted.client, talk(said_back, "Thanks!")))) <= {"NONE"}
        assert len(scripted.requests_of("decide")) == before
        assert sorted(await known(scripted.client)) == sorted(FACTS)


@pytest.mark.parametrize(
    ("said_back", "reply", "made"),
    [
        ("You live in Bergen now.", "Yes.", "User lives in Bergen"),
        ("You live in Oslo since 2019.", "Yes.", "User lives in Oslo since 2019"),
        ("You used to live in Oslo.", "True.", "User used to live in Oslo"),
        ("You like green tea.", "I like green tea and rye bread.", "User likes green tea and rye bread"),
    ],
)
async def test_news_are_no_echo(resources: Resources, tenant: Tenant, said_back: str, reply: str, made: str) -> None:
    """What adds a name, a figure, a time or a word of its own is decided like any fact."""
    mind = ConversationScript(facts={"My sister Una": FACTS, said_back: [made]})
    async with with_scripted_model(resources, tenant, mind) as scripted:
        await tell(scripted.client, ALL_OF_IT)
        assert events(await tell(scripted.client, talk(said_back, reply))) in (["ADD"], ["UPDATE"])
        assert made in await known(scripted.client)
