"""Links and paths in the docs lead to something that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "clients").glob("*/README.md")]
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
ANCHOR = re.compile(r"\]\(([^)\s#]*)#([^)\s]+)\)")
PATH = re.compile(r"`((?:service|tests|bench|docs|migrations)/[\w./-]+)`")
"""A path from the root of the repository; patterns with a `*` are not checked."""
MODULE = re.compile(r"`(\w+/[\w/]+\.(?:py|sql))`")
"""A file by its path below service/, from the root, or from the page."""
MADE = {"service/upkeep/jobs/tags.py"}
"""By who follows docs/adding.md."""


def test_links_of_the_docs_exist() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in PAGES
        for link in LINK.findall(page.read_text())
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert not missing, "\n".join(missing)


def test_anchors_of_the_docs_exist() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {link}#{anchor}"
        for page in PAGES
        for link, anchor in ANCHOR.findall(page.read_text())
        if "://" not in link and anchor not in _anchors(page if not link else page.parent / link)
    ]
    assert not missing, "\n".join(missing)


def _anchors(page: Path) -> set[str]:
    """Of its headings, as they are made where the pages are shown."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_paths_in_the_docs_exist() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in PAGES
        for path in PATH.findall(page.read_text())
        if path not in MADE and not (ROOT / path).exists()
    ]
    assert not missing, "\n".join(missing)


def test_modules_in_the_docs_exist() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in PAGES
        for path in MODULE.findall(page.read_text())
        if path not in MADE and not any((start / path).exists() for start in (ROOT / "service", ROOT, page.parent))
    ]
    assert not missing, "\n".join(missing)


def test_tests_that_the_docs_name_exist() -> None:
    """As in `tests/access/test_auth.py::test_whoami`."""
    named = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
    missing = [
        f"{page.relative_to(ROOT)}: {file}::{test}"
        for page in PAGES
        for file, test in named.findall(page.read_text())
        if not (ROOT / file).exists()
        or not re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), re.MULTILINE)
    ]
    assert not missing, "\n".join(missing)


def test_paths_in_the_code_exist() -> None:
    """Docstrings and comments that name a page of the docs."""
    named = re.compile(r"\bdocs/[\w./-]+\.md")
    missing = [
        f"{file.relative_to(ROOT)}: {path}"
        for folder in ("service", "tests", "bench", "migrations")
        for file in [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.sql")]
        for path in named.findall(file.read_text())
        if not (ROOT / path).exists()
    ]
    assert not missing, "\n".join(missing)
