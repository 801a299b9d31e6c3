from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from service.providers import connections
from service.providers.connections import Answer, Broken, Connections

REQUEST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-What: This\r\n\r\nfine"
CLOSE = b""
"""In a script: the server closes the connection."""


class Server:
    """Answers the n-th request of all with the n-th script, piece by piece; `accepted`: connections so far."""

    def __init__(self, *scripts: list[bytes]) -> None:
        self._scripts = list(scripts)
        self._writers: list[asyncio.StreamWriter] = []
        self.accepted = 0
        self.ended = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._writers.append(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                for piece in self._scripts.pop(0) if self._scripts else [PLAIN]:
                    if piece == CLOSE:
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.005)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.ended += 1
            writer.close()

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()


@asynccontextmanager
async def running(*scripts: list[bytes], tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(*scripts)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        server.hang_up()
        await asyncio.sleep(0.01)


@asynccontextmanager
async def met(*scripts: list[bytes]) -> AsyncIterator[tuple[Server, Connections]]:
    async with running(*scripts) as server:
        ours = Connections("127.0.0.1", server.port, None, connect_timeout_s=2.0)
        yield server, ours
        await ours.close()


@pytest.mark.parametrize(
    ("pieces", "status", "content"),
    [
        ([PLAIN], 200, b"fine"),
        ([PLAIN[:20], PLAIN[20:-2], PLAIN[-2:]], 200, b"fine"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nfi\r\n", b"2\r\nne\r\n0\r\n\r\n"], 200, b"fine"),
        ([b"HTTP/1.1 200 OK\r\n\r\nfi", b"ne", CLOSE], 200, b"fine"),
        ([b"HTTP/1.0 200 OK\r\n\r\nfine", CLOSE], 200, b"fine"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", PLAIN], 200, b"fine"),
        ([b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + PLAIN], 200, b"fine"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b""),
        ([b"HTTP/1.1 429 Slow\r\nContent-Length: 2\r\n\r\n{}"], 429, b"{}"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], 200, b""),
    ],
)
async def test_answers(pieces: list[bytes], status: int, content: bytes) -> None:
    async with met(pieces) as (_, ours):
        told = await ours.exchange(REQUEST)
        assert (told.status, told.content) == (status, content)


async def test_headers() -> None:
    async with met([PLAIN]) as (_, ours):
        assert (await ours.exchange(REQUEST)).headers == {"content-length": "4", "x-what": "This"}


async def test_a_connection_is_kept() -> None:
    async with met([b"HTTP/1.1 500 No\r\nX-Old: 1\r\nContent-Length: 3\r\n\r\nold"]) as (server, ours):
        await ours.exchange(REQUEST)
        for _ in range(3):
            told = await ours.exchange(REQUEST)
            assert (told.status, told.content, "x-old" in told.headers) == (200, b"fine", False)
        assert server.accepted == 1


async def test_as_many_as_requests_in_flight() -> None:
    async with met() as (server, ours):
        await asyncio.gather(*(ours.exchange(REQUEST) for _ in range(3)))
        await asyncio.gather(*(ours.exchange(REQUEST) for _ in range(3)))
        assert server.accepted == 3


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfine"],
        [b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nfine"],
        [PLAIN + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"],
        [PLAIN + b"rubbish"],
        [PLAIN, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"],
        [PLAIN, CLOSE],
    ],
)
async def test_a_connection_that_is_not_kept(pieces: list[bytes]) -> None:
    """Least of all one on which another answer lies already: it would be taken for the next one's."""
    async with met(pieces) as (server, ours):
        assert (await ours.exchange(REQUEST)).content == b"fine"
        await asyncio.sleep(0.03)
        assert (await ours.exchange(REQUEST)).content == b"fine"
        assert server.accepted == 2


async def test_an_idle_connection_grows_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_S", 0.02)
    async with met() as (server, ours):
        await ours.exchange(REQUEST)
        await asyncio.sleep(0.03)
        await ours.exchange(REQUEST)
        assert (server.accepted, server.ended) == (2, 1)


@pytest.mark.parametrize(
    "pieces",
    [
        [CLOSE],
        [PLAIN[:20], CLOSE],
        [PLAIN[:-1], CLOSE],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n", CLOSE],
        [b"HTTP/1.1 100 Continue\r\n\r\n", CLOSE],
        [b"SSH-2.0-OpenSSH_9.2\r\n"],
        [b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"],
    ],
)
async def test_half_an_answer_is_none(pieces: list[bytes]) -> None:
    async with met(pieces) as (server, ours):
        with pytest.raises(Broken):
            await ours.exchange(REQUEST)
        assert (await ours.exchange(REQUEST)).content == b"fine"
        assert server.accepted == 2


async def test_who_stops_waiting_costs_the_connection() -> None:
    async with met([PLAIN[:-1]]) as (server, ours):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ours.exchange(REQUEST), 0.05)
        await asyncio.sleep(0.02)
        assert server.ended == 1
        assert (await ours.exchange(REQUEST)).content == b"fine"


async def test_closing_ends_idle_connections() -> None:
    async with met() as (server, ours):
        await ours.exchange(REQUEST)
        await ours.close()
        await asyncio.sleep(0.01)
        assert server.ended == 1


async def test_nobody_is_there() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(Broken) as caught:
        await Connections("127.0.0.1", port, None, connect_timeout_s=2.0).exchange(REQUEST)
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)


async def test_a_host_whose_first_address_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as server:
        monkeypatch.setattr(connections, "HEAD_START_S", 0.02)
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, server.port)) for host in ("silent", "127.0.0.1")]
        dial = connections._dial

        async def look_up(*_: Any, **__: Any) -> list[Any]:
            return found

        async def silent(one: tuple[Any, ...]) -> socket.socket:
            if one[4][0] == "silent":
                await asyncio.sleep(60)
            return await dial(one)

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
        monkeypatch.setattr(connections, "_dial", silent)
        ours = Connections("somewhere", server.port, None, connect_timeout_s=1.0)
        assert (await ours.exchange(REQUEST)).content == b"fine"
        await ours.close()
        del found[1]
        with pytest.raises(TimeoutError):
            await Connections("somewhere", server.port, None, connect_timeout_s=0.1).exchange(REQUEST)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Certificate and key of "localhost"."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    files = folder / "certificate.pem", folder / "key.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    where = ["-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run([openssl, *words.split(), *where], check=True, capture_output=True)
    return files


async def over_tls(files: tuple[Path, Path]) -> Answer:
    """The second answer over one connection; a server that nobody vouches for is not spoken to."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(*files)
    async with running(tls=theirs) as server:
        trusting = ssl.create_default_context(cafile=str(files[0]))
        ours = Connections("localhost", server.port, trusting, connect_timeout_s=5.0)
        await ours.exchange(REQUEST)
        told = await ours.exchange(REQUEST)
        assert server.accepted == 1
        await ours.close()
        for host, tls in (("localhost", ssl.create_default_context()), ("127.0.0.1", trusting)):
            with pytest.raises(Broken):
                await Connections(host, server.port, tls, connect_timeout_s=5.0).exchange(REQUEST)
        return told


async def test_tls(certificate: tuple[Path, Path]) -> None:
    assert (await over_tls(certificate)).content == b"fine"


@pytest.mark.parametrize(
    "scenario",
    [
        test_a_connection_is_kept,
        test_closing_ends_idle_connections,
        test_who_stops_waiting_costs_the_connection,
        lambda: test_half_an_answer_is_none([PLAIN[:-1], CLOSE]),
        lambda: test_answers([b"HTTP/1.1 200 OK\r\n\r\nfi", b"ne", CLOSE], 200, b"fine"),
    ],
)
def test_on_uvloop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """The loop that the service runs on."""
    uvloop.run(scenario())


def test_tls_on_uvloop(certificate: tuple[Path, Path]) -> None:
    assert uvloop.run(over_tls(certificate)).content == b"fine"
