"""The URL of a Postgres server: any spelling that libpq takes, in the one that SQLAlchemy and asyncpg understand.

SQLAlchemy hands the parameters of a URL to asyncpg as arguments, and asyncpg takes the files of TLS in a DSN only: they
travel in the parameter `dsn`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

if TYPE_CHECKING:
    from sqlalchemy import URL

LeastTls = Literal["prefer", "require", "verify-full"]

MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
"""libpq's sslmode, the weakest first. Up to `prefer` a connection may end up without encryption."""

FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
IN_DSN = frozenset({*FILES, "sslpassword", "sslnegotiation", "ssl_min_protocol_version", "ssl_max_protocol_version"})
ARGUMENTS = frozenset(
    {"host", "port", "timeout", "command_timeout", "passfile", "target_session_attrs", "krbsrvname", "gsslib"}
)
"""Further parameters that asyncpg takes by the same name."""


def normal(given: str, *, least: LeastTls = "prefer", ca_file: Path | None = None) -> str:
    """The URL for SQLAlchemy. `least`: how far a connection to another machine must be encrypted, and is, where the URL
    does not say; `ca_file`: of the authority that signs servers, for URLs that name none. Raises ValueError."""
    from sqlalchemy import make_url  # 11 MB, which the supervisor of an embedded server does without
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(given)
    except ArgumentError:
        raise ValueError("must be a URL such as postgresql://user:password@host/database") from None
    if url.drivername.partition("+")[0] not in ("postgresql", "postgres"):
        raise ValueError("must be a Postgres URL")
    if "@" in (url.host or ""):
        raise ValueError("has more than one @: write one in the password as %40")
    if not 0 <= (url.port or 0) <= 65_535:
        raise ValueError(f"has the port {url.port}, and the highest is 65535")
    query = _libpq_query(url)
    mode = str(query.pop("sslmode")) if "sslmode" in query else None
    tls = {name: str(query.pop(name)) for name in list(query) if name in IN_DSN}
    unknown = sorted(query.keys() - ARGUMENTS)
    if unknown:
        raise ValueError(f"has the parameter {unknown[0]}, which is not supported here: remove it")
    if not is_local(url):
        mode = _strong_enough(mode, least)
    if mode is not None:
        query["ssl"] = mode
        if mode.startswith("verify") and ca_file is not None:
            tls.setdefault("sslrootcert", str(ca_file))
        _check(mode, tls)
    if tls:
        query["dsn"] = f"postgresql://?{urlencode(tls)}"
    return url.set(drivername="postgresql+asyncpg", query=query).render_as_string(hide_password=False)


def libpq(given: str, *, hide_password: bool = False) -> str:
    """The URL in libpq's form."""
    from sqlalchemy import make_url

    url = make_url(given)
    return url.set(drivername="postgresql", query=_libpq_query(url)).render_as_string(hide_password=hide_password)


def is_local(url: URL) -> bool:
    """Whether the server is on this machine: a socket, localhost or a loopback address."""
    named = url.query.get("host") or url.host or ""
    hosts = named if isinstance(named, tuple) else named.split(",")
    return all(host.startswith("/") or host in ("", "localhost") or _is_loopback(host) for host in hosts)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition(":")[0]).is_loopback
    except ValueError:
        return host == "::1"


def _libpq_query(url: URL) -> dict[str, str | tuple[str, ...]]:
    query = dict(url.query)
    if "ssl" in query:  # asyncpg's word
        query.setdefault("sslmode", query.pop("ssl"))
    inner = query.pop("dsn", "")
    return query | (dict(parse_qsl(urlsplit(inner).query)) if isinstance(inner, str) else {})


def _strong_enough(mode: str | None, least: LeastTls) -> str | None:
    if least == "prefer":
        return mode
    if mode in MODES and MODES.index(mode) < MODES.index(least):
        raise ValueError(f"has sslmode={mode}, where LOXODON_DATABASE_TLS asks for {least}")
    return mode or least


def _check(mode: str, tls: Mapping[str, str]) -> None:
    if mode not in MODES:
        raise ValueError(f"has an sslmode that is not one of {', '.join(MODES)}")
    for name in FILES:
        if name in tls and not Path(tls[name]).is_file():
            raise ValueError(f"names {tls[name]} as {name}, which does not exist")
    if mode.startswith("verify") and "sslrootcert" not in tls:
        raise ValueError(
            f"has sslmode={mode}, which needs the file of a certificate authority: sslrootcert in the URL, or "
            "LOXODON_DATABASE_CA_FILE"
        )
