"""The pages that people read, and their fenced blocks.

The info string of a fence says what is in it, and what is done with it: `sh`, `python`, `ts`, `http`, `sql` are run,
`json` and `yaml` are parsed, `text`, `diff` and `mermaid` are shown. Two marks may follow:

- `no-run: REASON` for what cannot run in a test (it needs a cluster, a package index ...). Python is still compiled.
- `forever` for what runs until somebody stops it; it must still run after a moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "clients").glob("*/README.md")),
)
RUN = ("sh", "python", "ts", "http", "sql")
KINDS = (*RUN, "json", "yaml", "text", "diff", "mermaid")
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INFO = re.compile(r"(\w+)(?: (?:no-run: (.+)|(forever)))?")


@dataclass(frozen=True, slots=True)
class Fence:
    page: Path
    line: int
    kind: str
    reason: str | None
    """Why it cannot run in a test."""
    forever: bool
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Fence]:
    """Returns its fenced blocks in order; an info string that says nothing known fails."""
    whole = page.read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(whole):
        line = whole.count("\n", 0, fence.start()) + 1
        info = INFO.fullmatch(fence[1])
        if info is None or info[1] not in KINDS:
            raise ValueError(f"{page.relative_to(ROOT)}:{line}: say in the fence what it is, one of {KINDS}")
        found.append(Fence(page, line, info[1], info[2], info[3] is not None, fence[2]))
    return found


EVERY = [block for page in PAGES for block in blocks(page)]
