"""Sends a request to an address that a tenant named, and to no address that only this machine or network reaches.

The name is looked up once, every address of the answer is checked, and the connection goes to one that passed: a name
that means something else a moment later changes nothing. Redirects are not followed, proxies of the environment not
asked, and of the answer nothing is kept but its status.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from service.fair_gate import outside

if TYPE_CHECKING:
    from aiohttp.abc import ResolveResult

MAX_ANSWER = 1_024
"""Bytes of an answer that are read, so that the connection ends in order."""

NAT64 = IPv6Network("64:ff9b::/96")

REFUSED = "The address is private or reserved, and not in LOXODON_WEBHOOK_NETWORKS."
NO_HTTPS = "Plain http is for addresses in LOXODON_WEBHOOK_NETWORKS; use https."


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """`status` None: no answer, and `error` says why. `took_ms`: from the look-up to the answer's head."""

    status: int | None
    error: str | None
    took_ms: float

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class Unreachable(OSError):
    """No address of the name may be reached."""


def is_allowed(address: str, networks: Sequence[str], *, secure: bool) -> bool:
    """Whether a webhook may reach this IP address; `secure`: over https."""
    found = ip_address(address.partition("%")[0])
    inner = _inner(found)
    for each in (found, inner):
        if any(each in network for network in map(ip_network, networks) if network.version == each.version):
            return True
    return secure and all(each.is_global and not each.is_multicast for each in (found, inner))


def _inner(found: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 one stands for, if any."""
    if isinstance(found, IPv6Address):
        if found in NAT64:
            return IPv4Address(int(found) & 0xFFFFFFFF)
        return found.ipv4_mapped or found.sixtofour or found
    return found


def fault_of(url: str, networks: Sequence[str]) -> str | None:
    """What is wrong with the address as it is written, before any look-up; None: nothing."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is no URL such as https://example.com/hook"
    if parts.scheme not in ("https", "http") or not host or port == 0:
        return "must be a URL such as https://example.com/hook"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user or password: check the signature instead"
    if parts.scheme == "http" and not networks:
        return "must begin with https:// (plain http is for LOXODON_WEBHOOK_NETWORKS)"
    if _is_address(host) and not is_allowed(host, networks, secure=parts.scheme == "https"):
        return "must not be a private or reserved address (but those in LOXODON_WEBHOOK_NETWORKS)"
    return None


async def post(
    url: str, body: bytes, headers: Mapping[str, str], *, networks: Sequence[str], timeout_s: float
) -> WebhookAnswer:
    """What the receiver answered; never raises because of it. The first call in a process imports the client."""
    import aiohttp

    began = time.perf_counter()
    secure = urlsplit(url).scheme == "https"

    def answer(status: int | None, error: str | None) -> WebhookAnswer:
        return WebhookAnswer(status, error, round((time.perf_counter() - began) * 1_000, 1))

    if fault := fault_of(url, networks):
        return answer(None, f"url: {fault}.")
    connector = aiohttp.TCPConnector(resolver=_guarded(networks, secure=secure), force_close=True)
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    try:
        async with (
            outside(),
            aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as client,
            client.post(url, data=body, headers=dict(headers), allow_redirects=False) as got,
        ):
            await got.content.read(MAX_ANSWER)
            return answer(got.status, _refusal(got.status))
    except TimeoutError:
        return answer(None, f"No answer within {timeout_s:g} s.")
    except aiohttp.ClientConnectorCertificateError:
        return answer(None, "No connection: the certificate is not trusted here, or not of this name.")
    except aiohttp.ClientConnectorError as exc:
        cause = exc.os_error
        return answer(None, str(cause) if isinstance(cause, Unreachable) else f"No connection: {_kind(exc)}.")
    except (aiohttp.ClientError, OSError, ValueError) as exc:  # its words may quote the answer
        return answer(None, str(exc) if isinstance(exc, Unreachable) else f"No answer: {_kind(exc)}.")


def _refusal(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    return f"Answered {status}{', and redirects are not followed' if 300 <= status < 400 else ''}."


def _kind(exc: BaseException) -> str:
    return type(exc).__name__


def _is_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _guarded(networks: Sequence[str], *, secure: bool) -> Any:
    """A resolver that gives out addresses which may be reached; raises Unreachable when there is none."""
    from aiohttp import ThreadedResolver
    from aiohttp.abc import AbstractResolver

    class GuardedResolver(AbstractResolver):
        def __init__(self) -> None:
            self._inner = ThreadedResolver()

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            found = await self._inner.resolve(host, port, socket.AF_UNSPEC)
            allowed = [each for each in found if is_allowed(each["host"], networks, secure=secure)]
            if not allowed:
                public = not secure and any(is_allowed(each["host"], networks, secure=True) for each in found)
                raise Unreachable(NO_HTTPS if public else REFUSED)
            return allowed

        async def close(self) -> None:
            await self._inner.close()

    return GuardedResolver()
