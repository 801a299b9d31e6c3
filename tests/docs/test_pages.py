"""Every block of the README, of docs/ and of the clients' READMEs that can run does, as it stands, page by page."""

from __future__ import annotations

import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from bench import target
from bench.target import Service
from tests.docs.pages import EVERY, PAGES, ROOT, RUN, Fence
from tests.docs.paster import Paster
from tests.sdk import client_typescript
from tools import install

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with target.started() as found:
        yield found


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the `loxodon` that `make run` leaves in .venv/bin; pytest also runs where nobody called make."""
    folder = tmp_path_factory.mktemp("bin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(install, "COMMAND", folder / "loxodon")
        install._write_command()
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_runs(service: Service, commands: Path, page: Path, tmp_path: Path) -> None:
    paster = Paster(service, commands, tmp_path)
    for block in EVERY:
        if block.page == page and block.kind not in ("ts", "text", "diff", "mermaid"):
            paster.read(block)


def test_the_sentence_that_the_readme_follows(service: Service) -> None:
    """Whose answer, history and secret are as the figure says."""
    readme = (ROOT / "README.md").read_text()
    (told,) = re.findall(r'^"(I moved [^"]+)" ', readme, re.MULTILINE)
    (before,) = re.findall(r'Alice said "([^"]+)" in September', readme)
    (question, answer) = re.findall(r'^"([^"]+)"   →   (.+)$', readme, re.MULTILINE)[0]
    with httpx2.Client(base_url=service.url, headers={"Authorization": f"Bearer {service.key}"}, timeout=60) as client:
        for text, day in ((before, "2026-09-01"), (told, "2026-11-23")):
            message = {"role": "user", "content": text, "timestamp": f"{day}T10:00:00Z"}
            stored = client.post("/v1/memories", json={"user_id": "figure", "messages": [message]}).json()["results"]
        assert [each["event"] for each in stored] == ["UPDATE"]
        found = client.post("/v1/memories/search", json={"user_id": "figure", "query": question}).json()["results"]
        assert [each["memory"] for each in found] == [answer]
        versions = client.get(f"/v1/memories/{found[0]['id']}/history").json()["versions"]
        assert [each["memory"] for each in versions] == [f"User: {before}", answer]


def test_the_typescript_of_the_pages_compiles_and_runs(service: Service, tmp_path: Path) -> None:
    if not os.environ.get("ALL_CLIENTS") or shutil.which("npm") is None:
        pytest.skip("only with ALL_CLIENTS, and needs node with npm")
    try:
        client_typescript.build()
    except SystemExit as error:
        pytest.skip(f"its compiler could not be fetched: {str(error)[:200]}")
    paster = Paster(service, tmp_path, tmp_path)
    client_typescript.run_programs(
        {block.place: paster.filled(block.text) for block in EVERY if block.kind == "ts" and block.reason is None},
        service,
    )


@pytest.mark.parametrize(
    "block", [each for each in EVERY if each.kind in RUN and each.reason], ids=lambda block: str(block.place)
)
def test_blocks_that_cannot_run_here(block: Fence) -> None:
    """Skipped with the reason that stands in the fence, so that `pytest -rs` lists them."""
    pytest.skip(str(block.reason))


def test_code_is_fenced() -> None:
    """An indented block says nothing of what is in it, so it would not be run."""
    indented = re.compile(r"(?:\A|\n)\n {4}[^ \n*-]")
    fences = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    assert [page for page in PAGES if indented.search(fences.sub("", page.read_text()))] == []


USER = re.compile(
    r"""(?:user_id["']?\s*[=:]\s*["']|[?&\s]user_id=|--user |X-User-Id": "|/users/|^USER = ")([a-z][\w-]*)""",
    re.MULTILINE,
)


def test_pages_and_examples_share_no_user() -> None:
    """What one of them stores would be found by the questions of another."""
    users = defaultdict(set)
    texts = [(block.page, block.text) for block in EVERY if block.kind in RUN and block.reason is None]
    texts += [(file, file.read_text()) for file in (ROOT / "clients" / "python" / "examples").glob("*.py")]
    for page, text in texts:
        for user in USER.findall(text):
            users[user].add(str(page.relative_to(ROOT)))
    users.pop("user_id", None)  # a parameter that is passed on
    assert {user: pages for user, pages in users.items() if len(pages) > 1} == {}
    assert len(users) > 15
