"""Webhooks over TLS: a receiver whose certificate is trusted, one whose is not, and one that is somebody else's."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

ROOT = Path(__file__).resolve().parents[2]
SEND = """
import asyncio, json, sys
from service.feed import webhook_sender
found = asyncio.run(webhook_sender.post(sys.argv[1], b"{}", {}, networks=["127.0.0.0/8", "::1"], timeout_s=5))
print(json.dumps([found.status, found.error]))
"""


@asynccontextmanager
async def receiver(folder: Path) -> AsyncIterator[int]:
    """Answers 204 on `localhost` with a certificate of its own, `cert.pem` in the folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, pkcs8, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, ["127.0.0.1"], 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def sent(url: str, trusted: Path | None) -> tuple[int | None, str | None]:
    """What the sender told, in a process of its own: which authorities are trusted is read when it starts."""
    env = {**os.environ, **({"SSL_CERT_FILE": str(trusted)} if trusted else {})}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SEND, url, cwd=ROOT, env=env, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()
    assert process.returncode == 0
    status, error = json.loads(told)
    return status, error


async def test_a_certificate_must_be_trusted_and_of_the_name(tmp_path: Path) -> None:
    refused = (None, "No connection: the certificate is not trusted here, or is for another name.")
    async with receiver(tmp_path) as port:
        trusted = tmp_path / "cert.pem"
        assert await sent(f"https://localhost:{port}/hook", trusted) == (204, None)
        assert await sent(f"https://localhost:{port}/hook", None) == refused
        assert await sent(f"https://127.0.0.1:{port}/hook", trusted) == refused
