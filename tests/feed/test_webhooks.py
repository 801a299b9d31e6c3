"""Webhooks: signed, tried again, given up, and never sent where only this machine reaches."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import itertools
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.domain.job import Job
from service.domain.moments import system_clock
from service.feed import webhook_sender, webhooks
from service.feed.webhooks import deliver, dispatch
from service.kit.settings import Settings
from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.worker import loop
from service.worker.loop import Worker
from service.worker.registry import TASKS
from tests.conftest import SetClock, Tenant
from tests.fakes.http_server import Cut, HttpRequest, HttpServer, ScriptedAnswer
from tests.support.application import Tables, client_of, serving
from tests.support.calls import results_of, store

NEAR = ("127.0.0.0/8",)


class Receiver:
    """A real HTTP server that keeps what it got, and answers as `how` says."""

    def __init__(self) -> None:
        self.got: list[HttpRequest] = []
        self.how: Callable[[HttpRequest], ScriptedAnswer] = lambda _: ScriptedAnswer(204, b"")
        self.server = HttpServer(self._answer)

    def _answer(self, request: HttpRequest) -> ScriptedAnswer:
        self.got.append(request)
        return self.how(request)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(each.json["type"], each.json["data"].get("memory_id")) for each in self.got]


@pytest.fixture(autouse=True)
def soon_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(loop, "POLL_S", 0.05)
    monkeypatch.setattr(loop, "BACKOFF_S", 0.05)
    monkeypatch.setattr(webhooks, "ATTEMPTS", 3)


@pytest.fixture
def quick(settings: Settings) -> Settings:
    return settings.changed(webhook_networks=NEAR)


@pytest.fixture
async def near(resources: Resources, quick: Settings, tenant: Tenant) -> AsyncIterator[AsyncClient]:
    """A client of an application whose webhooks may reach this machine."""
    async with serving(replace(resources, settings=quick)) as app, client_of(app, tenant.key) as client:
        yield client


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    async with made.server:
        yield made


@asynccontextmanager
async def sending(resources: Resources, database: Database, quick: Settings) -> AsyncIterator[None]:
    """Within the block a worker makes and sends deliveries."""
    stop = asyncio.Event()
    worker = Worker(replace(resources, db=database, settings=quick), {"deliver_webhook": TASKS["deliver_webhook"]})
    running = asyncio.create_task(worker.run(stop))
    try:
        yield
    finally:
        stop.set()
        await running


async def until(fulfilled: Callable[[], Any], within_s: float = 20.0) -> None:
    async with asyncio.timeout(within_s):
        while not fulfilled():  # noqa: ASYNC110 (no event to wait for)
            await asyncio.sleep(0.02)


async def created(client: AsyncClient, receiver: Receiver, **fields: Any) -> tuple[str, str]:
    """Id and secret of a new webhook."""
    answer = await client.post("/v1/webhooks", json={"url": f"{receiver.url}/hook", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["webhook"]["id"], answer.json()["secret"]


async def deliveries(client: AsyncClient, webhook: str, **query: str) -> list[dict[str, Any]]:
    return await results_of(client.get(f"/v1/webhooks/{webhook}/deliveries", params=query))


async def settled(client: AsyncClient, webhook: str, state: str, count: int = 1) -> list[dict[str, Any]]:
    async with asyncio.timeout(20):
        while len(found := await deliveries(client, webhook, state=state)) < count:  # noqa: ASYNC110 (it is asked, no event)
            await asyncio.sleep(0.05)
    return found


async def dispatched(worker: Resources) -> Resources:
    async with asyncio.timeout(20):
        while not await dispatch(worker):  # noqa: ASYNC110 (another test's transaction may hold the feed back)
            await asyncio.sleep(0.05)
    return worker


def is_signed(request: HttpRequest, secret: str) -> bool:
    """What a receiver checks, written from the specification and not from our code."""
    named = {name.lower(): value for name, value in request.headers.items()}
    signed = f"{named['webhook-id']}.{named['webhook-timestamp']}.".encode() + request.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return f"v1,{wanted}" in named["webhook-signature"].split()


async def test_changes_are_sent_signed_and_once(
    near: AsyncClient, receiver: Receiver, resources: Resources, worker_database: Database, quick: Settings
) -> None:
    await store(near, "Said before the webhook was made")
    webhook, secret = await created(near, receiver)
    picky, _ = await created(near, receiver, events=["memory.deleted"], description="only what goes")
    one = await store(near, "Plants tulips in October", tags=["garden"])
    async with sending(resources, worker_database, quick):
        await until(lambda: receiver.told == [("memory.added", one)])
        answer = (await near.get("/v1/changes")).json()["results"]
        (change,) = [each for each in answer if each["memory_id"] == one]
        del change["cursor"]
        assert receiver.got[0].json["data"] == change, "the same as the feed says"
        assert receiver.got[0].json["timestamp"] == change["changed_at"]
        assert is_signed(receiver.got[0], secret)
        assert not is_signed(receiver.got[0], "whsec_Zm9vYmFy")
        (done,) = await settled(near, webhook, "delivered")
        assert (done["change_id"], done["attempts"], done["status"]) == (change["id"], 1, 204)
        await near.delete(f"/v1/memories/{one}")
        await until(lambda: len(receiver.got) == 3)
        assert receiver.told[1:] == [("memory.deleted", one)] * 2
        assert len([each for each in receiver.got[1:] if is_signed(each, secret)]) == 1, "each has its own secret"
        assert [each["event"] for each in await settled(near, picky, "delivered")] == ["memory.deleted"]
        await asyncio.sleep(0.3)
        assert len(receiver.got) == 3
    await near.delete(f"/v1/webhooks/{picky}")
    assert (await near.get(f"/v1/webhooks/{picky}")).status_code == 404


async def test_a_receiver_that_fails_is_tried_again_and_given_up(
    near: AsyncClient, receiver: Receiver, resources: Resources, worker_database: Database, quick: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("service.feed.webhooks.FIRST_WAIT_S", 0.0)
    webhook, _ = await created(near, receiver)
    answers = iter([
        ScriptedAnswer(500, b"oops"),
        ScriptedAnswer(302, b"", {"Location": f"{receiver.url}/elsewhere"}),
        ScriptedAnswer(204, b""),
    ])  # fmt: skip
    receiver.how = lambda _: next(answers)
    one = await store(near, "Waters the ferns on Mondays")
    async with sending(resources, worker_database, quick):
        (done,) = await settled(near, webhook, "delivered")
        assert (done["attempts"], receiver.told) == (3, [("memory.added", one)] * 3)
        assert len({each.headers["webhook-id"] for each in receiver.got}) == 1, "the same id, so it can be told apart"
        assert all("elsewhere" not in each.path for each in receiver.got)
        assert (await near.get(f"/v1/webhooks/{webhook}")).json()["failing_since"] is None

        receiver.how = lambda _: ScriptedAnswer(200, b"{}", delay_s=1.0)  # hangs
        await store(near, "Sharpens the garden shears in March")
        (dead,) = await settled(near, webhook, "dead")
        assert (dead["attempts"], dead["status"], dead["error"]) == (3, None, "No answer within 0.5 s.")
        assert (await near.get(f"/v1/webhooks/{webhook}")).json()["failing_since"] is not None
        dead_jobs = await near.get("/v1/jobs", params={"state": "dead", "name": "deliver_webhook"})
        assert dead_jobs.json()["results"] == []

        receiver.how = lambda _: ScriptedAnswer(204, b"", cut=Cut.NEVER)
        assert (await near.patch(f"/v1/webhooks/{webhook}", json={"enabled": True})).status_code == 200
        assert len(await settled(near, webhook, "delivered", 2)) == 2


async def test_a_webhook_is_disabled_with_a_reason_and_goes_on_where_it_was(
    near: AsyncClient, receiver: Receiver, resources: Resources, worker_database: Database, quick: Settings,
    tables: Tables, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("service.feed.webhooks.FIRST_WAIT_S", 0.0)
    webhook, _ = await created(near, receiver)
    receiver.how = lambda _: ScriptedAnswer(410, b"")
    await store(near, "Polishes the brass bell in June")
    async with sending(resources, worker_database, quick):
        async with asyncio.timeout(20):
            while (shown := (await near.get(f"/v1/webhooks/{webhook}")).json())["enabled"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert shown["disabled_reason"] == "The receiver answered 410 Gone."
        two = await store(near, "Paints the gate white in July")
        await asyncio.sleep(0.2)
        assert len(receiver.got) == 1
        assert len(await deliveries(near, webhook, state="waiting")) == 1, "nothing is given up with it"
        receiver.how = lambda _: ScriptedAnswer(204, b"")
        shown = (await near.patch(f"/v1/webhooks/{webhook}", json={"enabled": True})).json()
        assert (shown["enabled"], shown["disabled_reason"]) == (True, None)
        await until(lambda: ("memory.added", two) in receiver.told)

        receiver.how = lambda _: ScriptedAnswer(503, b"")
        await store(near, "Oils the hinges of the cellar door")
        await until(lambda: receiver.got[-1].json["data"]["memory"]["memory"].startswith("Oils"))
        long = "UPDATE webhook SET failing_since = '2000-01-01' WHERE id = $1 AND failing_since IS NOT NULL"
        jars = itertools.count()
        async with asyncio.timeout(20):
            while (shown := (await near.get(f"/v1/webhooks/{webhook}")).json())["enabled"]:
                await tables.fetch(long, UUID(webhook))
                await store(near, f"Counts the jars on the shelf, number {next(jars)}")
                await asyncio.sleep(0.1)
        assert shown["disabled_reason"].startswith("Every delivery failed for 72 hours")


async def test_what_is_erased_before_it_was_sent_is_not_sent(
    near: AsyncClient, receiver: Receiver, resources: Resources, worker_database: Database, quick: Settings
) -> None:
    webhook, _ = await created(near, receiver)
    one = await store(near, "Hides a Quandong stone in the drawer")
    worker = await dispatched(replace(resources, db=worker_database, settings=quick))
    (waiting,) = await deliveries(near, webhook, state="waiting")
    assert (await near.delete(f"/v1/memories/{one}?purge=true")).status_code == 200
    workspace = UUID((await near.get("/v1/whoami")).json()["workspace_id"])
    job = Job(workspace, uuid4(), "deliver_webhook", None, {"webhook_id": webhook}, 1, 3, "test")
    await deliver(job, worker)
    assert [each["id"] for each in await deliveries(near, webhook, state="dropped")] == [waiting["id"]]
    async with sending(resources, worker_database, quick):
        await until(lambda: receiver.told == [("memory.erased", one)])
    assert b"Quandong" not in b"".join(each.body for each in receiver.got)


async def test_one_delivery_of_a_webhook_is_under_way_and_the_log_is_told_of_changes(
    near: AsyncClient, receiver: Receiver, resources: Resources, worker_database: Database, quick: Settings,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """However many changes wait for a receiver that fails, the job list holds one job and the log one line."""
    monkeypatch.setattr("service.feed.webhooks.FIRST_WAIT_S", 0.0)
    caplog.set_level("INFO", "service")
    webhook, _ = await created(near, receiver)
    texts = [f"Waters the {plant} on Mondays" for plant in ("fern", "palm", "lemon tree", "cactus", "orchid")]
    receiver.how = lambda _: ScriptedAnswer(500, b"")
    stored = [await store(near, text) for text in texts]
    ticking = replace(resources, clock=system_clock)
    async with sending(ticking, worker_database, quick), sending(ticking, worker_database, quick):
        await until(lambda: len(receiver.got) >= 7)
        jobs = (await near.get("/v1/jobs", params={"name": "deliver_webhook"})).json()["results"]
        assert len(jobs) <= 3, "one that is about to end, one that runs, and the next"
        lines = [each.getMessage() for each in caplog.records if webhook in each.getMessage()]
        assert lines == [f"webhook {webhook} has begun to fail, and is tried again: Answered 500."]
        poison = stored[2]
        receiver.how = lambda request: ScriptedAnswer(500 if poison in request.body.decode() else 204, b"")
        await settled(near, webhook, "delivered", 4)
        (dead,) = await settled(near, webhook, "dead")
        assert (dead["memory_id"], dead["attempts"]) == (poison, 3), "it holds up none of the others"
    assert f"webhook {webhook} works again after" in caplog.text


async def test_a_new_delivery_does_not_wait_for_one_that_fails(
    near: AsyncClient, receiver: Receiver, resources: Resources, worker_database: Database, quick: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("service.feed.webhooks.FIRST_WAIT_S", 600.0)
    webhook, _ = await created(near, receiver)
    poison = await store(near, "Waters the fern on Mondays")
    receiver.how = lambda request: ScriptedAnswer(500 if poison in request.body.decode() else 204, b"")
    ticking = replace(resources, clock=system_clock)
    async with sending(ticking, worker_database, quick):
        await until(lambda: receiver.told == [("memory.added", poison)])
        retry_at = (await near.get(f"/v1/webhooks/{webhook}")).json()["retry_at"]
        receiver.how = lambda _: ScriptedAnswer(500, b"")
        palm = await store(near, "Waters the palm on Tuesdays")
        await until(lambda: receiver.told[1:] == [("memory.added", palm)])
        await settled(near, webhook, "waiting", 2)
        found = (await near.get(f"/v1/webhooks/{webhook}")).json()
        assert found["retry_at"] == retry_at or retry_at is None, "new failures do not put the retry off"
        receiver.how = lambda _: ScriptedAnswer(204, b"")
        await store(near, "Waters the cactus in May")
        assert len(await settled(near, webhook, "delivered", 3)) == 3, "it works again: the others follow at once"


async def test_slow_receivers_hold_half_of_the_slots(
    near: AsyncClient,
    receiver: Receiver,
    resources: Resources,
    worker_database: Database,
    quick: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[float] = []
    at_once: list[int] = []
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 5)

    def slowly(_: HttpRequest) -> ScriptedAnswer:
        begun.append(time.monotonic())
        at_once.append(sum(begun[-1] - each < 0.25 for each in begun))
        return ScriptedAnswer(204, b"", delay_s=0.3)

    receiver.how = slowly
    hooks = [await created(near, receiver) for _ in range(6)]
    await store(near, "Rows across the lake at dawn")
    async with sending(resources, worker_database, quick):
        await until(lambda: len(receiver.got) == len(hooks))
    assert quick.jobs.concurrency == 4
    assert max(at_once) <= 2


async def test_a_delivery_that_is_cut_off_is_sent_again(
    near: AsyncClient, receiver: Receiver, resources: Resources, worker_database: Database, quick: Settings,
    tables: Tables,
) -> None:  # fmt: skip
    """Its worker was killed while it sent: the webhook is free again when the receiver's time is over."""
    webhook, _ = await created(near, receiver)
    one = await store(near, "Mends the fence behind the barn")
    worker = await dispatched(replace(resources, db=worker_database, settings=quick))
    workspace = UUID((await near.get("/v1/whoami")).json()["workspace_id"])
    soon = resources.clock() + timedelta(seconds=0.2)
    await tables.fetch("UPDATE webhook SET busy_until = $1 WHERE id = $2", soon, UUID(webhook))
    job = Job(workspace, uuid4(), "deliver_webhook", None, {"webhook_id": webhook}, 1, 3, "test")
    await deliver(job, worker)
    assert receiver.got == []
    (waiting,) = await tables.fetch(
        "SELECT run_after > now() AS later FROM job WHERE workspace_id = $1 AND kind = 'deliver_webhook'", workspace
    )
    assert waiting["later"]
    clock = resources.clock
    assert isinstance(clock, SetClock)
    clock.forward(seconds=1)
    async with sending(resources, worker_database, quick):
        await until(lambda: receiver.told == [("memory.added", one)])


async def test_a_test_says_what_came_back(near: AsyncClient, receiver: Receiver) -> None:
    webhook, secret = await created(near, receiver)
    answer = (await near.post(f"/v1/webhooks/{webhook}/test")).json()
    assert (answer["accepted"], answer["status"], answer["error"]) == (True, 204, None)
    assert receiver.got[0].json["type"] == "webhook.test"
    assert is_signed(receiver.got[0], secret)
    receiver.how = lambda _: ScriptedAnswer(301, b"", {"Location": "http://127.0.0.1/"})
    answer = (await near.post(f"/v1/webhooks/{webhook}/test")).json()
    assert (answer["accepted"], answer["error"]) == (False, "Answered 301, and redirects are not followed.")


async def test_who_may_and_what_is_refused(
    client: AsyncClient, near: AsyncClient, other_client: AsyncClient, app: FastAPI, receiver: Receiver
) -> None:
    for url, word in (
        ("http://example.com/hook", "https"),
        ("https://127.0.0.1/hook", "private"),
        ("https://[::1]/hook", "private"),
        ("https://169.254.169.254/latest/meta-data", "private"),
        ("https://[::ffff:10.0.0.1]/", "private"),
        ("https://[64:ff9b::a00:1]/", "private"),
        ("https://me:secret@example.com/", "password"),
        ("ftp://example.com", "URL"),
        ("nonsense", "URL"),
        ("https://[nonsense", "URL"),
        ("https://１２７.0.0.1:8080/", "ASCII"),
        ("https://①②⑦.⓪.⓪.①/", "ASCII"),
        ("https://127。0。0。1/", "ASCII"),
        ("https://١٢٧.0.0.1/", "ASCII"),
        ("https://%31%32%37.0.0.1/", "ASCII"),
        ("https://b\u00fccher.example/", "ASCII"),
        ("https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", "ASCII"),
        ("https://[fe80::1%25eth0]/", "ASCII"),
        ("https://127.0.0.1\t/", "ASCII"),
        ("https://example.com\n", "ASCII"),
        ("https://2130706433/", "four"),
        ("https://0177.0.0.1/", "four"),
        ("https://0x7f.0.0.1/", "four"),
        ("https://127.1/", "four"),
        ("https://127.0.0.1./", "private"),
        ("https://[::127.0.0.1]/", "private"),
        ("https://[fec0::1]/", "private"),
        ("https://192.0.0.192/", "private"),
    ):
        answer = await client.post("/v1/webhooks", json={"url": url})
        assert (answer.status_code, answer.json()["field"]) == (400, "url"), url
        assert word in answer.json()["detail"], url
    webhook, _ = await created(near, receiver)
    assert (await other_client.get(f"/v1/webhooks/{webhook}")).status_code == 404
    assert (await other_client.get("/v1/webhooks")).json()["results"] == []
    made = await client.post("/v1/api-keys", json={"name": "reader", "rights": ["memory:read"]})
    async with client_of(app, made.json()["api_key"]) as reader:
        assert (await reader.get("/v1/webhooks")).status_code == 403
    listed = (await near.get("/v1/webhooks")).json()["results"]
    assert [each["id"] for each in listed] == [webhook]
    assert "whsec_" not in json.dumps(listed)
    for _ in range(19):
        await created(near, receiver)
    assert (await near.post("/v1/webhooks", json={"url": receiver.url})).status_code == 409


@pytest.mark.parametrize(
    ("address", "networks", "secure", "allowed"),
    [
        ("93.184.216.34", (), True, True),
        ("93.184.216.34", (), False, False),
        ("10.1.2.3", (), True, False),
        ("10.1.2.3", ("10.0.0.0/8",), False, True),
        ("192.168.0.1", ("10.0.0.0/8",), True, False),
        ("100.64.0.1", (), True, False),
        ("0.0.0.0", (), True, False),
        ("224.0.1.1", (), True, False),
        ("255.255.255.255", (), True, False),
        ("::1", (), True, False),
        ("fe80::1%eth0", (), True, False),
        ("fd00::1", (), True, False),
        ("::ffff:127.0.0.1", (), True, False),
        ("2002:7f00:1::", (), True, False),
        ("64:ff9b::7f00:1", (), True, False),
        ("2606:2800:220:1:248:1893:25c8:1946", (), True, True),
        ("::ffff:10.0.0.1", ("10.0.0.0/8",), True, True),
        ("::ffff:93.184.216.34", (), True, True),
        ("64:ff9b::5db8:d822", (), True, True),
        ("192.0.0.192", (), True, False),
        ("168.63.129.16", (), True, False),
        ("192.88.99.1", (), True, False),
        ("198.19.0.1", (), True, False),
        ("203.0.113.1", (), True, False),
        ("fec0::1", (), True, False),
        ("64:ff9b:1::1", (), True, False),
        ("::127.0.0.1", (), True, False),
        ("::93.184.216.34", (), True, False),
        ("::ffff:0:127.0.0.1", (), True, False),
        ("100::1", (), True, False),
        ("2001::1", (), True, False),
        ("2001:db8::1", (), True, False),
        ("2002:5db8:d822::1", (), True, False),
        ("3fff::1", (), True, False),
        ("5f00::1", (), True, False),
        ("ff0e::1", (), True, False),
        ("127.0.0.1", ("127.0.0.2/32", "10.0.0.0/8"), True, False),
    ],
)
def test_where_webhooks_may_reach(address: str, networks: tuple[str, ...], *, secure: bool, allowed: bool) -> None:
    assert webhook_sender.is_allowed(address, networks, secure=secure) == allowed


async def test_a_name_that_leads_inside_is_not_followed(monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> None:
    port = receiver.url.rpartition(":")[2]
    inside = await webhook_sender.post(f"https://localhost:{port}/", b"{}", {}, networks=(), timeout_s=2)
    assert (inside.status, inside.error) == (None, webhook_sender.REFUSED)
    plain = await webhook_sender.post(f"http://localhost:{port}/", b"{}", {}, networks=("10.0.0.0/8",), timeout_s=2)
    assert (plain.status, plain.error) == (None, webhook_sender.REFUSED)
    assert receiver.got == []
    names = iter([["127.0.0.1"], ["127.0.0.2", "169.254.169.254"], ["::1"]])

    async def resolve(*_: Any, **__: Any) -> list[dict[str, Any]]:
        return [{"hostname": "rebinding.example", "host": each, "port": int(port), "family": _family(each),
                 "proto": 0, "flags": 0} for each in next(names)]  # fmt: skip

    monkeypatch.setattr("aiohttp.ThreadedResolver.resolve", resolve)
    for _ in range(3):
        answer = await webhook_sender.post("https://rebinding.example/", b"{}", {}, networks=(), timeout_s=2)
        assert (answer.status, answer.error) == (None, webhook_sender.REFUSED)
    monkeypatch.undo()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        refused = await webhook_sender.post(nobody, b"{}", {}, networks=NEAR, timeout_s=2)
    assert refused.error is not None
    assert refused.error.startswith("No connection")


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


@pytest.mark.parametrize("networks", [(), ("127.0.0.2/32", "10.0.0.0/8")])
@pytest.mark.parametrize(
    "host",
    ["１２７.0.0.1", "①②⑦.⓪.⓪.①", "127。0。0。1", "127.0.0.1.", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "0",
     "%31%32%37.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]"],
)  # fmt: skip
async def test_the_address_that_is_connected_decides(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver, host: str, networks: tuple[str, ...]
) -> None:
    """Also for what the check of the written address would let through."""
    monkeypatch.setattr(webhook_sender, "fault_of", lambda *_: None)
    monkeypatch.setenv("HTTPS_PROXY", receiver.url)
    monkeypatch.setenv("HTTP_PROXY", receiver.url)
    connected: list[Any] = []

    async def connect(_: socket.socket, to: Any) -> None:
        connected.append(to)

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", connect)
    for scheme in ("https", "http") if networks else ("https",):
        url = f"{scheme}://{host}:{receiver.server.port}/"
        answer = await webhook_sender.post(url, b"{}", {}, networks=networks, timeout_s=2)
        assert answer.status is None, answer
    assert (connected, receiver.got) == ([], [])
