"""A walk through the service with mem0's own client in Python, sync and async, of whichever version is installed.

Needs LOXODON_URL and LOXODON_API_KEY. Ends with an error at the first answer that is not as mem0's docs say.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
import uuid
from importlib.metadata import version

os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": tempfile.mkdtemp(prefix="mem0-")}

import httpx
from mem0 import AsyncMemoryClient, MemoryClient

HOST = os.environ["LOXODON_URL"] + "/v1/compat/mem0"
KEY = os.environ["LOXODON_API_KEY"]
IS_OLD = version("mem0ai").startswith("1.")
USER = f"walker/{uuid.uuid4()}" if not IS_OLD else f"walker-{uuid.uuid4()}"
TALK = [
    {"role": "user", "content": "Hi, I'm Ana. I moved to Lisbon last month and I work at Acme."},
    {"role": "assistant", "content": "Nice to meet you, Ana!"},
]
PATIENCE_S = 20.0


def results(answer: object) -> list[dict]:
    found = answer["results"] if isinstance(answer, dict) else answer
    assert isinstance(found, list), answer
    return found


def listed(client: MemoryClient, user: str = USER, **more: object) -> list[dict]:
    return results(client.get_all(filters={"user_id": user}, **more))


def waited(client: MemoryClient, least: int) -> list[dict]:
    """What is there once what was added is: adding may take a while, as at mem0's."""
    until = time.monotonic() + PATIENCE_S
    while len(found := listed(client)) < least:
        assert time.monotonic() < until, found
        time.sleep(0.2)
    return found


def refused(call: object, *args: object, **named: object) -> Exception:
    try:
        call(*args, **named)  # type: ignore[operator]
    except Exception as exc:
        return exc
    raise AssertionError(f"{call} was not refused")


def adds(client: MemoryClient) -> None:
    answer = client.add(TALK, user_id=USER, metadata={"source": "walk", "priority": 3})
    assert answer["event_id"] and answer["status"] in ("PENDING", "SUCCEEDED"), answer
    said = client.add("My sister Maria keeps bees.", user_id=USER, infer=False, metadata={"topic": "family"})
    assert [each["event"] for each in results(said)] == ["ADD"], said
    assert said["results"][0]["data"]["memory"] == "My sister Maria keeps bees."
    client.add({"role": "user", "content": "Parks in bay 12"}, user_id=USER, agent_id="guide", infer=False)
    event = httpx.get(f"{HOST}/v1/event/{said['event_id']}/", headers={"Authorization": f"Token {KEY}"}).json()
    assert event["status"] == "SUCCEEDED" and event["results"][0]["data"]["memory"].startswith("My sister"), event
    client.add("Only for today", user_id=USER, infer=False, expiration_date="2999-01-31")
    assert "messages" in str(refused(client.add, [], user_id=USER))
    assert "user_id" in str(refused(client.add, TALK))


def reads(client: MemoryClient) -> dict:
    everything = waited(client, 4)
    assert all(each["user_id"] == USER and each["created_at"] and each["id"] for each in everything)
    (bees,) = [each for each in everything if "bees" in each["memory"]]
    assert bees["metadata"]["topic"] == "family" and isinstance(bees["categories"], list), bees
    (today,) = [each for each in everything if each["memory"] == "Only for today"]
    assert today["expiration_date"] == "2999-01-31", today
    one = client.get(bees["id"])
    assert one["memory"] == bees["memory"] and one["id"] == bees["id"]
    first = client.get_all(filters={"user_id": USER}, page=1, page_size=2)
    second = client.get_all(filters={"user_id": USER}, page=2, page_size=2)
    assert first["count"] == len(everything) and len(first["results"]) == 2 and first["next"], first
    assert second["previous"] and not {e["id"] for e in first["results"]} & {e["id"] for e in second["results"]}
    assert listed(client, f"nobody-{uuid.uuid4()}") == []
    refusal = refused(client.get, str(uuid.uuid4()))
    assert type(refusal).__name__ == "MemoryNotFoundError" and "no memory with this id" in str(refusal), refusal
    return bees


def searches(client: MemoryClient) -> None:
    def found(query: str, filters: dict, **more: object) -> list[str]:
        return [each["memory"] for each in results(client.search(query, filters=filters, **more))]

    hits = results(client.search("Who keeps bees?", filters={"user_id": USER}))
    assert "bees" in hits[0]["memory"] and 0 < hits[0]["score"] <= 1 and hits[0]["user_id"] == USER, hits
    assert len(found("anything", {"user_id": USER}, top_k=2)) == 2
    family = {"AND": [{"user_id": USER}, {"metadata": {"topic": "family"}}]}
    assert found("bees", family) == ["My sister Maria keeps bees."]
    recent = {
        "AND": [
            {"user_id": USER},
            {"created_at": {"gte": "2020-01-01"}},
            {"NOT": [{"keywords": {"icontains": "bees"}}]},
        ]
    }
    assert not any("bees" in each for each in found("bees", recent)) and found("bees", recent)
    assert found("parking", {"AND": [{"user_id": USER}, {"agent_id": "guide"}]}) == ["Parks in bay 12"]
    either = {"OR": [{"user_id": USER}, {"agent_id": "guide"}]}
    assert any("bay 12" in each for each in found("Where is the car parked?", either))
    several = {"user_id": {"in": [USER, f"nobody-{uuid.uuid4()}"]}}
    assert any("bees" in each for each in found("bees", several))
    assert found("bees", {"user_id": f"nobody-{uuid.uuid4()}"}) == []
    assert found("bees", {"AND": [{"user_id": USER}, {"user_id": "another"}]}) == []
    strange = refused(client.search, "bees", filters={"user_id": USER, "created_at": {"since": "2020-01-01"}})
    assert type(strange).__name__ == "ValidationError" and "must be one of eq, ne" in str(strange), strange
    assert "user_id" in str(refused(client.search, "bees", filters={"created_at": {"gte": "2020-01-01"}}))


def changes(client: MemoryClient, bees: dict) -> None:
    changed = client.update(bees["id"], text="My sister Maria keeps goats.", metadata={"checked": True})
    assert changed["memory"].endswith("goats.") and changed["metadata"] == {"topic": "family", "checked": True}, changed
    assert any("goats" in each["memory"] for each in results(client.search("goats", filters={"user_id": USER})))
    past = client.history(bees["id"])
    assert [each["event"] for each in past] == ["ADD", "UPDATE"], past
    assert (
        past[1]["old_memory"] == bees["memory"] and past[1]["new_memory"].endswith("goats.") and past[1]["updated_at"]
    )
    others = [each for each in listed(client) if each["id"] != bees["id"]]
    done = client.batch_update([{"memory_id": each["id"], "metadata": {"batch": "yes"}} for each in others[:2]])
    assert "updated 2" in done["message"], done
    if not IS_OLD:  # of 1.x the call is sent, and then fails in the client
        said = client.feedback(bees["id"], feedback="POSITIVE", feedback_reason="right")
        assert said["feedback"] == "POSITIVE", said
        assert client.get(bees["id"])["feedback"] == "POSITIVE"


def deletes(client: MemoryClient, bees: dict) -> None:
    assert "deleted" in client.delete(bees["id"])["message"]
    assert type(refused(client.delete, bees["id"])).__name__ == "MemoryNotFoundError"
    assert client.history(bees["id"])[-1]["event"] == "DELETE"
    left = listed(client)
    done = client.batch_delete([{"memory_id": left[0]["id"]}])
    assert "deleted 1" in done["message"], done
    named = {each["name"]: each["type"] for each in client.users()["results"]}
    assert named[USER] == "user" and named["guide"] == "agent", named
    assert refused(client.delete_all) and refused(client.delete_all, user_id="*"), "never everybody"
    assert len(listed(client)) == len(left) - 1
    assert client.delete_all(user_id=USER)["message"] and listed(client) == []
    assert client.delete_all(user_id=f"nobody-{uuid.uuid4()}")["message"]
    client.add("For a while", user_id=USER, infer=False)
    assert client.delete_users(user_id=USER)["message"] == "Entity deleted successfully."
    assert listed(client) == []


def other_calls(client: MemoryClient) -> None:
    assert "custom_instructions" in client.project.get(fields=["custom_instructions"])
    for call, args in (
        (client.create_memory_export, ("{}",)),
        (client.get_summary, ()),
        (client.get_webhooks, (client.project_id if hasattr(client, "project_id") else "x",)),
        (lambda: client.project.update(custom_instructions="x"), ()),
    ):
        refusal = str(refused(call, *args))
        assert "not available" in refusal or "workspace" in refusal, refusal
    assert "unknown" in str(refused(MemoryClient, api_key="wrong", host=HOST))


async def walk_async() -> None:
    client = AsyncMemoryClient(api_key=KEY, host=HOST)
    user = f"async-{uuid.uuid4()}"
    added = await client.add("Likes rye bread", user_id=user, infer=False)
    found = results(await client.search("bread", filters={"user_id": user}))
    assert [each["memory"] for each in found] == ["Likes rye bread"], found
    bread = added["results"][0]["id"]
    assert (await client.get(bread))["memory"] == "Likes rye bread"
    await client.update(bread, text="Likes wheat bread")
    assert [each["event"] for each in await client.history(bread)] == ["ADD", "UPDATE"]
    assert len(results(await client.get_all(filters={"user_id": user}))) == 1
    assert (await client.delete(bread))["message"]
    assert (await client.delete_all(user_id=user))["message"]
    assert (await client.users())["results"] is not None


def main() -> None:
    client = MemoryClient(api_key=KEY, host=HOST)
    adds(client)
    bees = reads(client)
    searches(client)
    changes(client, bees)
    deletes(client, bees)
    other_calls(client)
    asyncio.run(walk_async())
    print(f"mem0ai {version('mem0ai')}: walked")


if __name__ == "__main__":
    main()
