"""The console's files: what is served and how, what is vendored, how much of our own there is."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from httpx2 import AsyncClient

from service.kit import shipped
from service.runtime.resources import Resources
from tests.support.application import client_of, serving

STATIC = shipped.PACKAGE / "console" / "static"
MOST_BYTES = 60_000
"""Of our own code, so that it can be read in an hour."""


async def test_every_file_is_served_without_a_key_under_a_strict_policy(anonymous: AsyncClient) -> None:
    index = await anonymous.get("/console")
    assert index.headers["content-type"].startswith("text/html")
    assert index.headers["cache-control"] == "no-store"
    [base] = set(re.findall(r"/console/\w{16}/", index.text))
    for file in STATIC.rglob("*"):
        if file.is_file() and file.name != "index.html":
            answer = await anonymous.get(base + file.relative_to(STATIC).as_posix())
            assert answer.content == file.read_bytes()
            policy = answer.headers["content-security-policy"].split("; ")
            assert {"default-src 'none'", "script-src 'self'", "connect-src 'self'", "trusted-types 'none'"} <= {
                *policy
            }
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"].endswith("immutable")
    script = await anonymous.get(base + "app.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert (await anonymous.get("/console/")).content == index.content
    named = re.findall(rf'modulepreload" href="{base}(.+?)"', index.text)
    assert {*named} == _imported_first(), "the page names what the first view imports, and nothing else"


def _imported_first() -> set[str]:
    """The modules that the page and its first view import, however indirectly."""
    found, left = set[str](), ["app.js", "views/memories.js"]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            text, folder = (STATIC / name).read_text(), (STATIC / name).parent
            paths = re.findall(r'^(?:import|export|\}) .*?from "(\..+?)";', text, re.M)
            left += [(folder / path).resolve().relative_to(STATIC).as_posix() for path in paths]
    return found


async def test_nothing_else_is_served(anonymous: AsyncClient) -> None:
    for path in ("pages.py", "../pages.py", "..%2Fpages.py", "static/app.js", "vendor", "/etc/passwd"):
        assert (await anonymous.get(f"/console/{path}")).status_code == 404


async def test_it_can_be_switched_off(resources: Resources) -> None:
    closed = replace(resources, settings=resources.settings.changed(serve_console=False))
    async with serving(closed) as app, client_of(app, None) as client:
        assert (await client.get("/console")).status_code == 404
        assert "console" not in (await client.get("/")).json()


def test_vendored_files_are_the_ones_that_are_named() -> None:
    rows = re.findall(
        r"^\| `(.+?)` .+ (\d+\.\d+\.\d+) \| (.+?) \| `(\w{64})` \|$", (STATIC / "vendor/README.md").read_text(), re.M
    )
    assert {name for name, *_ in rows} == {file.name for file in (STATIC / "vendor").iterdir()} - {
        "README.md",
        "htm-preact.d.ts",
    }
    for name, _, licence, digest in rows:
        assert licence
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest


def test_our_own_code_stays_small() -> None:
    own = [
        file for file in STATIC.rglob("*.*") if "vendor" not in file.parts and file.suffix in {".js", ".css", ".html"}
    ]
    assert sum(file.stat().st_size for file in own) <= MOST_BYTES
    assert not [file.name for file in own if "innerHTML" in file.read_text() or "http://" in file.read_text()]
