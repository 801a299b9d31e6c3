"""docs/architecture.md lists the rooms, and says of every arrow between two capabilities why it exists."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT
from tests.test_layers import HEIGHT, SERVICE, rooms_imported_by

PAGE = (ROOT / "docs" / "architecture.md").read_text()
PLATFORM = {
    *("domain", "kit", "language", "observability", "redaction", "postgres", "queue", "providers", "runtime"),
    *("access", "http"),
}
"""Any room above may use these."""
ON_TOP = {"compat", "mcp", "worker", "app", "launch", "command"}
"""These put the capabilities together."""


def test_rooms_are_listed() -> None:
    listed = re.search(r"^## The rooms.*?```text\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert listed is not None
    assert {name for line in listed[1].splitlines() for name in line[:16].replace(",", " ").split()} == HEIGHT.keys()


def test_arrows_between_capabilities_have_a_reason() -> None:
    capabilities = HEIGHT.keys() - PLATFORM - ON_TOP
    rows = re.findall(r"^\| (\w+) \| ([\w, ]+) \| .+ \|$", PAGE, re.MULTILINE)
    explained = {(start, end) for start, ends in rows for end in ends.split(", ") if start in capabilities}
    arrows = {
        (room, other)
        for room in capabilities
        for file in (SERVICE / room).glob("**/*.py")
        for other in rooms_imported_by(file)
        if other in capabilities and other != room
    }
    assert arrows == explained, f"unexplained: {arrows - explained}, gone: {explained - arrows}"
