"""docs/adding.md, followed for the job: its changes, applied to a copy of the service, make an hourly job."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

STEP = re.compile(r"^\d\. `(service/[\w/]+\.py)`.*?^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LISTED = """
from typing import get_args
from service.domain.job import WORKSPACE_JOBS, JobIntervals, JobName
from service.worker.registry import SHORTEST_S, TASKS

assert set(TASKS) == set(get_args(JobName))
assert set(WORKSPACE_JOBS) == set(JobIntervals.model_fields) | {"flag_stale"}
assert JobIntervals().tidy_tags == 60
assert TASKS["tidy_tags"].interval_s == SHORTEST_S
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "service", tmp_path / "service", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_an_hourly_job_added_as_the_page_says_is_in_the_registry(tree: Path) -> None:
    page = (ROOT / "docs" / "adding.md").read_text()
    section = page[page.index("### An hourly job") : page.index("## A type of relation")]
    steps = STEP.findall(section)
    assert len(steps) == section.count("```diff") == 3
    for path, diff in steps:
        file = tree / path
        file.write_text(apply(diff, file.read_text() if file.exists() else ""))
    subprocess.run([sys.executable, "-c", LISTED], cwd=tree, check=True, timeout=60)


def apply(diff: str, text: str) -> str:
    """The text with the added and removed lines of a diff. Lines of context need not follow one another."""
    lines, at = text.splitlines(), 0
    for line in diff.splitlines():
        kind, words = line[:1], line[1:]
        if kind == "+":
            lines.insert(at, words)
        else:
            at = lines.index(words, at)
        if kind == "-":
            del lines[at]
        else:
            at += 1
    return "\n".join(lines) + "\n"
