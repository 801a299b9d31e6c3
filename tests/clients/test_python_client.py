"""The Python client against a running service: its whole face, its retries, and the wheel in a folder of its own."""

from __future__ import annotations

import ast
import math
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import httpx
import pytest

import loxodon
from bench import target
from bench.target import Service
from loxodon import AsyncMemory, Memory
from loxodon._operations import OPERATIONS
from loxodon._wire import Positions
from loxodon.errors import BY_CODE
from service.http.errors import CODES
from tests.clients.unreliable import Fault, UnreliableProxy, answer_cut, answer_lost, dropped, refused
from tests.clients.wheel import build_wheel, first_session
from tests.fakes.http_server import ScriptedAnswer

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "python"
POSITION = Positions.HEADER
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with target.started() as found:
        yield found


@pytest.fixture
def proxy(service: Service) -> Iterator[UnreliableProxy]:
    with UnreliableProxy(service.url) as found:
        yield found


def test_reads_carry_the_greatest_position_of_the_process() -> None:
    """However many clients it has."""
    sent: list[str | None] = []
    reached = iter(("00000000000000A0", "0000000000000009", None, "00000000000000B0", None))

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers.get(POSITION))
        position = next(reached)
        return httpx.Response(200, json={"results": []}, headers={POSITION: position} if position else {})

    def client() -> Memory:
        return Memory("http://positions.test", "key", transport=httpx.MockTransport(answer))

    with client() as one, client() as another:
        one.add("Prefers tea", user_id="a")
        another.add("Has a boat", user_id="a")
        another.search("tea", user_id="a")
        one.add("Has a cat", user_id="a")
        another.search("cat", user_id="a")
    assert sent == [None, *["00000000000000A0"] * 3, "00000000000000B0"]


def test_what_is_generated_is_what_would_be_generated() -> None:
    """From docs/openapi.json and loxodon/_async.py."""
    done = subprocess.run([sys.executable, CLIENT / "generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("face", ["_async.py", "_sync.py"])
def test_each_method_gives_only_what_its_operation_takes(face: str) -> None:
    """Whatever words the API takes besides: the client knows those of the document alone."""
    calls = 0
    for node in ast.walk(ast.parse((CLIENT / "loxodon" / face).read_text())):
        match node:
            case ast.Call(func=ast.Attribute(attr="_call"), args=[ast.Constant(str(name)), ast.Dict(keys)]):
                given = {key.value for key in keys if isinstance(key, ast.Constant)}
                assert given <= OPERATIONS[name].arguments.keys(), name
                calls += 1
    assert calls > 30


def test_a_walk_through_the_client(service: Service) -> None:
    with Memory(service.url, service.key) as memory:
        tea = memory.add("Prefers tea over coffee.", user_id="ann", tags=["drink"], metadata={"priority": 3})
        assert tea["results"][0]["event"] == "ADD"
        tea_id = tea["results"][0]["id"]
        assert tea_id is not None
        told = memory.add([{"role": "user", "content": "I moved to Lisbon in May."}], user_id="ann")
        assert "Lisbon" in str(told["results"][0]["memory"])

        found = memory.search("what does she drink", user_id="ann", limit=1)
        assert [each["id"] for each in found["results"]] == [tea_id]
        low = memory.search("tea", user_id="ann", filters={"field": "metadata.priority", "operator": "gte", "value": 4})
        assert low["results"] == []
        bundle = memory.recall("Where does she live?", user_id="ann", format="markdown")
        assert "Lisbon" in str(bundle["markdown"])

        changed = memory.update(tea_id, importance=0.9, metadata={"priority": None}, if_match='"1"')
        assert (changed["importance"], changed["metadata"]) == (0.9, {})
        with pytest.raises(loxodon.PreconditionFailedError):
            memory.update(tea_id, importance=0.1, if_match='"1"')
        assert memory.get(tea_id)["version"] == 2
        assert len(memory.history(tea_id)["results"]) == 2
        assert memory.why(tea_id)["id"] == tea_id

        memory.add("Ann lives in Oslo.", user_id="ben")
        home = memory.add("Ann lives in Bergen now.", user_id="ben")["results"][0]["id"]
        assert home is not None
        assert memory.undo(memory.decisions(home)["results"][-1]["id"])["state"] == "undone"

        shown = memory.forget("tea", user_id="ann", dry_run=True)
        assert [each["id"] for each in shown["memories"]] == [tea_id]
        assert memory.forget("tea", user_id="ann")["removed"]
        with pytest.raises(loxodon.NotFoundError) as gone:
            memory.get(tea_id)
        assert (gone.value.field, gone.value.code, gone.value.status) == ("id", "not_found", 404)
        assert gone.value.request_id is not None
        assert gone.value.request_id in str(gone.value)
        lisbon = told["results"][0]["id"]
        assert lisbon is not None
        assert memory.delete(lisbon)["deleted"]  # type: ignore[typeddict-item]

        goal = memory.goals.create("Learn Portuguese", user_id="ann", deadline=datetime(2030, 1, 1, tzinfo=UTC))
        assert memory.goals.complete(goal["id"], result="B1")["status"] == "completed"
        memory.entities.put(name="Acme", type="organization", user_id="ann")
        assert [each["name"] for each in memory.entities.list(user_id="ann")].count("Acme") == 1
        memory.replace_profile("ann", preferences={"tone": "dry"})
        assert memory.profile("ann")["preferences"] == {"tone": "dry"}
        later = memory.add_later([{"role": "user", "content": "My dentist is Dr Weiss."}], user_id="cat")
        assert memory.wait(later["operation_id"])["status"] == "done"
        assert {each["id"] for each in memory.users(type="user")} >= {"ben", "cat"}
        assert memory.request("GET", "/v1/timeline", query={"user_id": "cat"})["results"]


async def test_the_same_with_await(service: Service) -> None:
    async with AsyncMemory(service.url, service.key) as memory:
        items = [{"content": f"Number {number} is lucky.", "user_id": "dan", "dedup": False} for number in range(25)]
        batch = await memory.add_many(items)  # type: ignore[arg-type]
        assert batch["failed"] == 0
        texts = [each["memory"] async for each in memory.list(user_id="dan", limit=10, order="asc")]
        assert len(set(texts)) == 25
        assert [len(page["results"]) async for page in memory.list(user_id="dan", limit=10).pages()] == [10, 10, 5]
        assert len(await memory.list(user_id="dan").first(3)) == 3

        talk = await memory.conversations.open(user_id="dan", external_id="chat")
        for index, text in enumerate(("Hello", "Yes.", "Yes.")):
            await memory.conversations.add(talk["id"], "user", text, turn_index=index)
        turns = [turn async for turn in memory.conversations.turns("chat", user_id="dan", limit=2)]
        assert [turn["content"] for turn in turns] == ["Hello", "Yes.", "Yes."]
        await memory.conversations.delete_turn(turns[2]["id"])
        assert await memory.conversations.delete(talk["id"])
        await memory.delete_all(user_id="dan")
        assert [each async for each in memory.list(user_id="dan")] == []


async def test_what_has_changed_is_told_page_by_page(service: Service) -> None:
    async with AsyncMemory(service.url, service.key) as memory:
        start = await memory.changes(after="now")
        assert start["results"] == []
        stored = await memory.add("Keeps bees on the roof.", user_id="fay")
        memory_id = stored["results"][0]["id"]
        assert memory_id is not None
        await memory.update(memory_id, tags=["hobby"])
        await memory.delete(memory_id)
        told, page, asked = list[tuple[str, bool]](), start, 0
        while len(told) < 3:
            assert (asked := asked + 1) < 200, told
            page = await memory.changes(after=page["next_cursor"], limit=1)
            mine = [each for each in page["results"] if each["memory_id"] == memory_id]
            told += [(each["event"], each["memory"] is None) for each in mine]
        assert told == [("memory.added", False), ("memory.updated", False), ("memory.deleted", True)]


def test_a_listing_holds_one_page(service: Service) -> None:
    """Nobody reads the second page before it is needed."""
    asked: list[str] = []
    with Memory(service.url, service.key) as memory:
        memory.add_many([{"content": f"Fact {number}", "user_id": "eve", "dedup": False} for number in range(6)])
        memory._http.event_hooks["request"] = [lambda request: asked.append(request.url.path)]
        listing = iter(memory.list(user_id="eve", limit=2))
        assert asked == []
        for _ in range(3):
            next(listing)
        assert len(asked) == 2


def test_a_lost_answer_is_asked_for_again_and_nothing_is_done_twice(
    service: Service, proxy: UnreliableProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loxodon._wire.FIRST_WAIT_S", 0.05)
    with Memory(proxy.url, service.key, retries=5) as memory:
        proxy.faults += [dropped, answer_lost, answer_cut, refused(503, "0", "store_unavailable"), refused(502)]
        stored = memory.add("The spare key is under the blue pot.", user_id="fay", dedup=False)
        assert stored["results"][0]["event"] == "ADD"
        assert len(proxy.requests) == 6
        assert len({request.headers["idempotency-key"] for request in proxy.requests}) == 1
        assert len({request.body for request in proxy.requests}) == 1
        assert len(list(memory.list(user_id="fay"))) == 1
        memory.add({"role": "user", "content": "The spare key is under the red pot."}, user_id="fay", dedup=False)
        assert proxy.requests[-1].headers["idempotency-key"] != proxy.requests[0].headers["idempotency-key"]


async def test_retry_after_is_waited_for(service: Service, proxy: UnreliableProxy) -> None:
    async with AsyncMemory(proxy.url, service.key) as memory:
        proxy.faults += [refused(429, "1", "rate_limited")]
        began = time.monotonic()
        await memory.search("key", user_id="fay")
        assert 1.0 <= time.monotonic() - began < 5.0
        proxy.faults += [refused(429, "3600", "rate_limited")]
        with pytest.raises(loxodon.RateLimitedError) as error:
            await memory.search("key", user_id="fay")
        assert error.value.retry_after_s == 3600


def test_what_cannot_be_repeated_safely_is_not(service: Service, proxy: UnreliableProxy) -> None:
    with Memory(proxy.url, service.key) as memory:
        proxy.faults += [answer_lost]
        with pytest.raises(loxodon.NoAnswerError) as error:
            memory.request("POST", "/v1/memories", body={"content": "One", "user_id": "gus"})
        assert error.value.sent
        assert len(proxy.requests) == 1
        proxy.faults += [refused(503, "0", "outcome_unknown")]
        with pytest.raises(loxodon.OutcomeUnknownError):
            memory.request("POST", "/v1/memories", body={"content": "Two", "user_id": "gus"})
        proxy.faults += [refused(429, "0", "rate_limited")]
        memory.request("POST", "/v1/memories", body={"content": "Three", "user_id": "gus"})
        proxy.faults += [refused(429, None, "rate_limited")]
        with pytest.raises(loxodon.RateLimitedError):
            memory.search("three", user_id="gus")
        proxy.faults += [refused(408, "0", "request_timeout")]
        with pytest.raises(loxodon.DeadlineExceededError):
            memory.request("POST", "/v1/memories", body={"content": "Four", "user_id": "gus"})
        proxy.faults += [refused(408, "0", "request_timeout")]
        memory.search("three", user_id="gus")
        with pytest.raises(loxodon.NotFoundError):
            memory.profile("gus")
        assert len(proxy.requests) == 9


@pytest.mark.parametrize("fault", [refused(500), refused(507), refused(503, None, "deadline_exceeded"), dropped])
def test_three_retries_after_half_a_second_one_and_two(service: Service, proxy: UnreliableProxy, fault: Fault) -> None:
    waits: list[float] = []
    with Memory(proxy.url, service.key) as memory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", waits.append)
        proxy.faults += [fault] * 4
        with pytest.raises(loxodon.LoxodonError):
            memory.whoami()
    assert len(proxy.requests) == 4
    assert waits == pytest.approx([0.5, 1, 2], rel=0.11)
    assert memory.settings.timeout_s == 25


def test_a_call_ends_when_its_own_time_is_over() -> None:
    """With its attempts and pauses; the last attempt has what is left."""
    patience: list[dict[str, float]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        patience.append(request.extensions["timeout"])
        time.sleep(0.1)
        return httpx.Response(503, json={"code": "store_unavailable", "detail": "Away."})

    def memory(call_timeout_s: float | None) -> Memory:
        transport = httpx.MockTransport(answer)
        return Memory("http://away.test", "key", transport=transport, retries=9, call_timeout_s=call_timeout_s)

    began = time.monotonic()
    with memory(1.0) as hurried, pytest.raises(loxodon.UnavailableError):
        hurried.whoami()
    assert time.monotonic() - began < 1.0
    assert [each["read"] <= most for each, most in zip(patience, (1.0, 0.5), strict=True)] == [True, True]
    with memory(0.0) as late, pytest.raises(loxodon.UnavailableError):
        late.whoami()
    assert memory(None).settings.call_timeout_s is None


def test_errors_are_types_with_the_services_sentence(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(service.url, service.key) as memory:
        with pytest.raises(loxodon.ScopeMissingError, match="At least one of user_id"):
            memory.search("tea")
        with pytest.raises(loxodon.InvalidInputError) as error:
            memory.add("x", user_id="hal", importance=7)
        assert error.value.field == "importance"
        with pytest.raises(TypeError, match="takes no argument 'usr_id'"):
            memory.add("x", usr_id="hal")  # type: ignore[call-arg]
    with Memory(service.url, "lox_wrong") as stranger, pytest.raises(loxodon.UnauthenticatedError):
        stranger.whoami()
    with (
        Memory(f"http://127.0.0.1:{target.free_port()}", "lox_x", retries=1) as nobody,
        pytest.raises(loxodon.NoAnswerError, match="after 2 attempts"),
    ):
        nobody.whoami()
    monkeypatch.delenv("LOXODON_API_KEY", raising=False)
    with pytest.raises(loxodon.LoxodonError, match="LOXODON_API_KEY"):
        Memory(service.url)
    monkeypatch.setenv("LOXODON_API_KEY", service.key)
    monkeypatch.setenv("LOXODON_URL", service.url + "/")
    with Memory() as memory:
        assert memory.whoami()["rights"]
        assert service.key not in repr(memory.settings)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://a", "lox_…"),
        ("http://a", "lox_1\n2"),
        ("http://127.0.0.1:abc", "lox_1"),
        ("http://a/?x=1", "lox_1"),
        ("a", "k"),
    ],
)
def test_what_no_request_can_carry_is_refused_before_one_is_sent(url: str, key: str) -> None:
    with pytest.raises(loxodon.LoxodonError, match=r"API key|address of a service") as error:
        Memory(url, key)
    assert key not in str(error.value)


async def test_a_request_keeps_the_query_of_its_path(service: Service) -> None:
    """Without it, a deletion would take more."""
    with Memory(service.url, service.key) as memory:
        for channel in ("board", "work"):
            memory.add(f"It is about the {channel}.", user_id="ida", channel=channel)
        taken = memory.request("DELETE", "/v1/memories?channel=board", query={"user_id": "ida", "agent_id": None})
        assert taken["deleted"] == 1
        async with AsyncMemory(service.url, service.key) as again:
            assert await again.request("GET", "/v1/memories?user_id=ida&channel=work")
        left = [each["memory"] for each in memory.list(user_id="ida", channels=["board", "work"])]
        assert left == ["It is about the work."]


@pytest.mark.parametrize(
    "path", ["{url}/v1/whoami", "//127.0.0.1/v1/whoami", "http:/v1/whoami", "/v1/whoami#a", "/a/../v1"]
)
def test_the_key_goes_to_the_service_alone(service: Service, proxy: UnreliableProxy, path: str) -> None:
    with Memory(service.url, service.key) as memory, pytest.raises(loxodon.UnsendableError, match="not a route"):
        memory.request("GET", path.format(url=proxy.url))
    assert proxy.requests == []


@pytest.mark.parametrize("key", ["a\nb", "  ", " a"])
def test_a_key_that_no_header_carries_is_refused_at_once(proxy: UnreliableProxy, key: str) -> None:
    with Memory(proxy.url, "lox_1") as memory:
        with pytest.raises(loxodon.UnsendableError, match="no request can carry"):
            memory.add("Prefers tea.", user_id="ivy", idempotency_key=key)
        with pytest.raises(loxodon.UnsendableError, match="no request can carry"):
            memory.request("POST", "/v1/memories", body={}, idempotency_key=key)
    assert proxy.requests == []


def test_half_of_a_surrogate_pair_is_refused(service: Service) -> None:
    """In a body by the service, which names the field."""
    half = "\ud83d"
    with Memory(service.url, service.key) as memory:
        for body, field in (
            ({"content": half}, "content"),
            ({"content": "It rains.", "metadata": {"a": [half]}}, "metadata.a[0]"),
        ):
            with pytest.raises(loxodon.InvalidInputError, match="lone surrogate") as error:
                memory.request("POST", "/v1/memories", body={"user_id": "ivy", **body})
            assert error.value.field == field
        for call in (
            lambda: memory.get(half),
            lambda: memory.list(user_id=half).first(1),
            lambda: memory.add("It rains.", user_id="ivy", idempotency_key=half),
            lambda: memory.request("GET", f"/v1/{half}"),
            lambda: memory.request("POST", "/v1/memories", body={}, idempotency_key=half),
        ):
            with pytest.raises(loxodon.UnsendableError, match="no request can carry"):
                call()


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("importance", lambda memory: memory.add("It rains.", user_id="ivy", importance=math.nan)),
        (
            "metadata.a[1].b",
            lambda memory: memory.add("It rains.", user_id="ivy", metadata={"a": [0, {"b": math.inf}]}),
        ),
        ("items[0].importance", lambda memory: memory.add_many([{"content": "It rains.", "importance": -math.inf}])),
        ("filters.importance.gt", lambda memory: memory.list(filters={"importance": {"gt": math.nan}}).first(1)),
        ("limit", lambda memory: memory.request("GET", "/v1/memories", query={"limit": math.inf})),
        ("content", lambda memory: memory.request("POST", "/v1/memories", body={"content": math.nan})),
    ],
)
def test_a_number_that_json_does_not_have_is_refused_before_anything_is_sent(
    proxy: UnreliableProxy, field: str, call: Callable[[Memory], object]
) -> None:
    with Memory(proxy.url, "lox_1") as memory, pytest.raises(loxodon.UnsendableError) as error:
        call(memory)
    assert re.fullmatch(rf"{re.escape(field)}: no request can carry (nan|-?inf)", str(error.value))
    assert proxy.requests == []


def test_a_body_that_contains_itself_is_refused(proxy: UnreliableProxy) -> None:
    metadata: dict[str, Any] = {}
    metadata["again"] = metadata
    with Memory(proxy.url, "lox_1") as memory, pytest.raises(loxodon.UnsendableError):
        memory.add("It rains.", user_id="ivy", metadata=metadata)
    assert proxy.requests == []


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.add("It rains.", user_id="ivy", metadata={"a": {1, 2}}),
        lambda memory: memory.add("It rains.", user_id="ivy", metadata={(1, 2): "a"}),
        lambda memory: memory.add(None, user_id="ivy"),
        lambda memory: memory.add(5, user_id="ivy"),
        lambda memory: memory.list(user_id="ivy", limit=b"5").first(1),
    ],
)
def test_what_json_does_not_have_is_refused_before_anything_is_sent(
    proxy: UnreliableProxy, call: Callable[[Memory], object]
) -> None:
    with Memory(proxy.url, "lox_1") as memory, pytest.raises(loxodon.UnsendableError):
        call(memory)
    assert proxy.requests == []


def test_a_key_in_any_script_is_a_key(service: Service, proxy: UnreliableProxy) -> None:
    with Memory(service.url, service.key) as memory:
        made = [memory.add("It rains.", user_id="ivy", dedup=False, idempotency_key="Nürnberg-17") for _ in range(2)]
        assert made[0] == made[1]
        again = {"content": "It rains.", "user_id": "ivy", "dedup": False}
        assert memory.request("POST", "/v1/memories", body=again, idempotency_key="Nürnberg-17") == made[0]


Type = Enum("Type", {"CONTEXT": "Context"}, type=str)


def test_enums_and_dates_are_sent_as_they_are_written(service: Service) -> None:
    given: dict[str, Any] = {"type": Type("Context")}
    asked: dict[str, Any] = {"types": [Type("Context")], "start": date(2020, 1, 1)}
    with Memory(service.url, service.key) as memory:
        memory.add("It is raining in Ulm.", user_id="jan", **given)
        assert len(list(memory.list(user_id="jan", **asked))) == 1


@pytest.mark.parametrize(
    ("body", "headers"),
    [(b"", {}), (b"<h1>Hello</h1>", {}), (b"no gzip", {"content-encoding": "gzip"})],
)
def test_an_answer_that_cannot_be_read_is_an_error_of_the_client(
    service: Service, proxy: UnreliableProxy, body: bytes, headers: dict[str, str]
) -> None:
    with Memory(proxy.url, service.key, retries=0) as memory:
        proxy.faults += [lambda request, passed: ScriptedAnswer(200, body, headers)]
        with pytest.raises(loxodon.LoxodonError):
            list(memory.list(user_id="jan"))


def test_every_code_of_the_service_has_a_type() -> None:
    """What is left is an ApiError by its status, or no route answers it."""
    assert set(CODES) - set(BY_CODE) == {
        "http_error",
        "method_not_allowed",
        "model_budget",
        "rerank_error",
    }


def test_the_wheel_holds_all_that_is_needed(service: Service, tmp_path: Path) -> None:
    """The README's first session runs from the wheel alone; `make clients` installs it with pip, too."""
    wheel = build_wheel(tmp_path)
    first_session(sys.executable, tmp_path, service, {"PYTHONPATH": str(wheel)})
    with zipfile.ZipFile(wheel) as held:
        assert {"loxodon/py.typed", "loxodon/types.py", "loxodon/_sync.py"} <= set(held.namelist())


@pytest.mark.parametrize("name", ["a/b", "/a", "a/", "/", "a\n", "100%", "a?b", "a#b", "a\\b", "１２", "../a", "a%2Fb"])
def test_a_name_reaches_what_it_names(service: Service, name: str) -> None:
    with Memory(service.url, service.key) as memory:
        memory.replace_profile(name, preferences={"tea": name})
        memory.conversations.open(user_id="alice", external_id=name)
        memory.conversations.add(name, "user", "I like tea.")
        assert memory.profile(name)["preferences"] == {"tea": name}
        assert [each["content"] for each in memory.conversations.turns(name)] == ["I like tea."]
        memory.conversations.delete(name)
        with pytest.raises(loxodon.NotFoundError):
            list(memory.conversations.turns(name))


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_is_no_name_is_sent_nowhere(service: Service, name: str) -> None:
    """It would be the address of something else, which may take more."""
    with Memory(service.url, service.key) as memory, pytest.raises(ValueError, match="user_id cannot be"):
        memory.profile(name)
