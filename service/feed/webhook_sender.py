"""Sends requests to an address that a tenant chose, but never to addresses that only this machine or network can reach.

The address of the socket is checked just before it connects, so it does not matter how a host is written or what its
name resolves to. Redirects are not followed, proxy settings of the environment are ignored, and only the status of the
answer is kept.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from pydantic import Field

from service.http.schemas import ResponseModel
from service.kit.fair_gate import outside

MAX_ANSWER = 1_024
"""Bytes of an answer that are read, so that the connection closes cleanly."""

AUTHORITY = re.compile(r"https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]+)?(?=[/?#]|\Z)", re.ASCII | re.IGNORECASE)
"""Only hosts that every parser reads the same way: no Unicode digits or dots, no percent-encoding, no zones."""

ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)", re.ASCII)
"""Forms that resolvers may read as an IPv4 address: 127.1, 0x7f.1, 2130706433."""

NAT64 = IPv6Network("64:ff9b::/96")
PUBLIC = ip_network("0.0.0.0/0"), ip_network("2000::/3")
RESERVED = tuple(map(ip_network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    "224.0.0.0/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    "168.63.129.16/32",  # Azure answers its own machines there
)))  # fmt: skip
"""Special-purpose ranges of IANA's registries. Not `is_global`, which changes with Python."""

REFUSED = "The address is private or reserved, and not in LOXODON_WEBHOOK_NETWORKS."
NO_HTTPS = "Plain http is only for addresses in LOXODON_WEBHOOK_NETWORKS; use https."


class WebhookTestResponse(ResponseModel):
    """How the receiver responded to a test."""

    accepted: bool = Field(description="Whether it responded with a status between 200 and 299")
    status: int | None = Field(description="The status of its response; null: no response", examples=[200])
    error: str | None = Field(
        description="Why it was not accepted; null: accepted", examples=["No answer within 10 s."]
    )
    took_ms: float = Field(description="Milliseconds from name resolution to the response", examples=[38.2])


class Unreachable(OSError):
    """No address of the name may be reached."""


def is_allowed(address: str, networks: Sequence[str], *, secure: bool) -> bool:
    """Whether a webhook may reach this IP address; `secure`: over https."""
    target = ip_address(address.partition("%")[0])
    inner = _inner(target)
    if any(ip in network for ip in (target, inner) for network in map(ip_network, networks)):
        return True
    return secure and any(inner in net for net in PUBLIC) and not any(inner in net for net in RESERVED)


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 one reaches, if any."""
    if isinstance(address, IPv6Address):
        return IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else address.ipv4_mapped or address
    return address


def fault_of(url: str, networks: Sequence[str]) -> str | None:
    """The fault of a URL, before name resolution; None if there is none."""
    from yarl import URL

    try:
        parts = URL(url)
        host, port = (parts.raw_host or "").rstrip("."), parts.port
    except ValueError:
        return "is not a URL such as https://example.com/hook"
    if parts.scheme not in ("https", "http") or not host or port == 0:
        return "must be a URL such as https://example.com/hook"
    if parts.user is not None or parts.password is not None:
        return "must not contain a user or password: check the signature instead"
    if not AUTHORITY.match(url):
        return "must name its host in ASCII letters, digits, dots and hyphens (xn--... for other alphabets)"
    if parts.scheme == "http" and not networks:
        return "must begin with https:// (plain http is only for LOXODON_WEBHOOK_NETWORKS)"
    try:
        if not is_allowed(host, networks, secure=parts.scheme == "https"):
            return "must not be a private or reserved address (except those in LOXODON_WEBHOOK_NETWORKS)"
    except ValueError:  # it is a name
        if ENDS_IN_NUMBER.fullmatch(host):
            return "must write an IPv4 address as four decimal numbers"
    return None


async def post(
    url: str, body: bytes, headers: Mapping[str, str], *, networks: Sequence[str], timeout_s: float
) -> WebhookTestResponse:
    """Sends a POST; returns the receiver's answer and never raises because of it. The first call in a process imports
    the client."""
    import aiohttp
    from yarl import URL

    began = time.perf_counter()

    def answer(status: int | None, error: str | None) -> WebhookTestResponse:
        took_ms = round((time.perf_counter() - began) * 1_000, 1)
        return WebhookTestResponse(accepted=error is None, status=status, error=error, took_ms=took_ms)

    if fault := fault_of(url, networks):
        return answer(None, f"url: {fault}.")
    to = URL(url)
    guard = _guard(networks, secure=to.scheme == "https")
    connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver(), socket_factory=guard, force_close=True)
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    try:
        async with (
            outside(),
            aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as client,
            client.post(to, data=body, headers=dict(headers), allow_redirects=False) as got,
        ):
            await got.content.read(MAX_ANSWER)
            return answer(got.status, _refusal(got.status))
    except TimeoutError:
        return answer(None, f"No answer within {timeout_s:g} s.")
    except aiohttp.ClientConnectorCertificateError:
        return answer(None, "No connection: the certificate is not trusted here, or is for another name.")
    except aiohttp.ClientConnectorError as exc:
        cause = exc.os_error
        return answer(None, str(cause) if isinstance(cause, Unreachable) else f"No connection: {type(exc).__name__}.")
    except (aiohttp.ClientError, OSError, ValueError) as exc:  # its words may quote the answer
        return answer(None, str(exc) if isinstance(exc, Unreachable) else f"No answer: {type(exc).__name__}.")


def _refusal(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    return f"Answered {status}{', and redirects are not followed' if 300 <= status < 400 else ''}."


def _guard(networks: Sequence[str], *, secure: bool) -> Callable[[Any], socket.socket]:
    """Makes a factory of sockets that raises Unreachable for a forbidden address."""

    def opened(target: Any) -> socket.socket:
        family, kind, protocol, _, (address, *_) = target
        if not is_allowed(address, networks, secure=secure):
            raise Unreachable(NO_HTTPS if is_allowed(address, networks, secure=True) else REFUSED)
        return socket.socket(family, kind, protocol)

    return opened
