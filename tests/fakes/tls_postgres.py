"""TLS in front of a Postgres that has none: answers the SSLRequest, does the handshake, passes on what is inside.

The embedded server is built without OpenSSL. Certificates are made with the `openssl` of the machine.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import make_url

SSL_REQUEST = (8).to_bytes(4, "big") + (80_877_103).to_bytes(4, "big")


@dataclass(frozen=True)
class Authority:
    """A certificate authority in a folder."""

    folder: Path
    name: str

    @property
    def certificate(self) -> Path:
        return self.folder / f"{self.name}.crt"

    @property
    def key(self) -> Path:
        return self.folder / f"{self.name}.key"

    @classmethod
    def make(cls, folder: Path, name: str) -> Authority:
        made = cls(folder, name)
        _openssl("req", "-x509", *_new_key(made.key), "-out", made.certificate, "-days", "2", "-subj", f"/CN={name}")
        return made

    def sign(self, address: str) -> ssl.SSLContext:
        """What a server at this address presents."""
        key, request, signed = (self.folder / f"server.{end}" for end in ("key", "csr", "crt"))
        extensions = self.folder / "server.ext"
        extensions.write_text(f"subjectAltName=IP:{address}")
        _openssl("req", *_new_key(key), "-out", request, "-subj", "/CN=postgres")
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial"),
            *("-out", signed, "-days", "2", "-extfile", extensions),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(signed, key)
        return context


def _new_key(path: Path) -> tuple[str | Path, ...]:
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path)


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass
class TlsPostgres:
    """`url` of the server for SQLAlchemy, without TLS parameters. `encrypted`: connections that came with TLS, `plain`:
    that asked for none."""

    url: str
    upstream: str
    context: ssl.SSLContext | None
    encrypted: int = 0
    plain: int = 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.readexactly(8)
        upstream: asyncio.StreamWriter | None = None
        try:
            if first == SSL_REQUEST:
                writer.write(b"S" if self.context else b"N")
                await writer.drain()
                if self.context is None:
                    first = await reader.readexactly(8)
                else:
                    await writer.start_tls(self.context)
                    self.encrypted, first = self.encrypted + 1, b""
            if first:
                self.plain += 1
            answers, upstream = await asyncio.open_unix_connection(self.upstream)
            upstream.write(first)
            async with asyncio.TaskGroup() as both:
                both.create_task(_pass_on(reader, upstream))
                both.create_task(_pass_on(answers, writer))
        except (OSError, asyncio.IncompleteReadError, ExceptionGroup):
            pass  # a client that does not trust the certificate hangs up
        finally:
            writer.transport.abort()
            if upstream is not None:
                upstream.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def tls_postgres(url: str, context: ssl.SSLContext | None) -> AsyncIterator[TlsPostgres]:
    """The server of `url` (a socket) at every loopback address, with TLS if there is a `context`."""
    real = make_url(url)
    found = TlsPostgres("", f"{real.query['host']}/.s.PGSQL.{real.query['port']}", context)
    server = await asyncio.start_server(found.connected, "0.0.0.0", 0)
    port = server.sockets[0].getsockname()[1]
    found.url = real.set(host="127.0.0.1", port=port, query={}).render_as_string(hide_password=False)
    async with server:
        yield found
