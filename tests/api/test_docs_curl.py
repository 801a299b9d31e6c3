"""Every curl line in the README and in docs/ works when it is pasted, one after the other."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import AsyncClient, Response

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(ROOT)
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    if "curl " in page.read_text()
)
BLOCK = re.compile(r"^```sh\n(.*?)^```$|((?:^ {4}[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
SERVER = "http://127.0.0.1:8080"


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of the page, as a shell reads them."""
    for fenced, indented in BLOCK.findall((ROOT / page).read_text()):
        begun = ""
        for line in (fenced or indented).splitlines():
            begun += line.strip() + "\n"
            if line.endswith("\\"):
                begun = begun[:-2] + " "
                continue
            try:
                words = shlex.split(begun, comments=True)
            except ValueError:  # a quotation goes on in the next line
                continue
            begun = ""
            if words:
                yield words
        assert not begun.strip(), f"{page} ends inside a quotation: {begun}"


async def curl(client: AsyncClient, words: list[str]) -> Response:
    """What curl would get. Knows the options that the pages use."""
    method, url, data, query = None, "", [], False
    rest = iter(words)
    for word in rest:
        if word == "-X":
            method = next(rest)
        elif word == "-H":
            next(rest)
        elif word in ("-d", "--data-urlencode"):
            data.append(next(rest))
        elif word == "-G":
            query = True
        elif not word.startswith(("-", "${H")):
            url = word
    assert url.startswith(SERVER), words
    path = url.removeprefix(SERVER)
    if query:
        return await client.get(path, params=dict(each.split("=", 1) for each in data))
    sent: dict[str, Any] = {"content": data[0], "headers": {"Content-Type": "application/json"}} if data else {}
    return await client.request(method or ("POST" if data else "GET"), path, **sent)


def named(answer: Any) -> str | None:
    """The id that a reader would copy from it."""
    first = answer["results"][0] if answer.get("results") else answer
    found: str | None = first.get("id")
    return found


@pytest.mark.parametrize("page", PAGES, ids=str)
async def test_every_curl_line_works(client: AsyncClient, page: Path) -> None:
    known, copied, ran = {"URL": SERVER}, None, 0
    for words in commands(page):
        assigned = re.fullmatch(r"([A-Z]+)=(.*)", words[0])
        if assigned and len(words) == 1:
            name, value = assigned.groups()
            known[name] = str(copied) if value == "..." else value
        elif words[0] == "curl":
            filled = [re.sub(r"\$([A-Z]+)", lambda found: known.get(found[1], found[0]), word) for word in words[1:]]
            answer = await curl(client, filled)
            assert answer.status_code < 300, f"{shlex.join(words)}: {answer.text}"
            copied, ran = named(answer.json()), ran + 1
    assert ran
