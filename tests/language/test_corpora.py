"""Every line of tests/corpora/<subject>/ holds for the check of its name.

A file such as text/tags.jsonl or text/lexemes/folding.jsonl is checked by `check_tags` or `check_lexemes` of
tests/language/checks/text.py; the keys of a line are the function's parameters. A failure names file and line.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType

import pytest

CORPORA = Path(__file__).parents[1] / "corpora"
SUBJECTS = MappingProxyType(
    {
        subject: importlib.import_module(f"tests.language.checks.{subject}")
        for subject in ("curator", "pii", "temporal", "text")
    }
)
FILES = {
    path.relative_to(CORPORA).as_posix().removesuffix(".jsonl"): path
    for subject in SUBJECTS
    for path in sorted((CORPORA / subject).rglob("*.jsonl"))
}


def check_of(name: str) -> Callable[..., None]:
    """The check of "subject/check" or "subject/check/part"."""
    subject, check = name.split("/")[:2]
    found: Callable[..., None] = getattr(SUBJECTS[subject], f"check_{check}")
    return found


def failures(path: Path, check: Callable[..., None]) -> Iterator[str]:
    """One entry for each line that fails, as "file:line: what was wrong"."""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line:
            continue
        try:
            check(**json.loads(line))
        except Exception as exc:
            what = f"{type(exc).__name__} {exc}".partition("\n")[0]
            yield f"{os.path.relpath(path)}:{number}: {what}\n    {line}"


@pytest.mark.parametrize("name", FILES)
def test_every_line_holds(name: str) -> None:
    wrong = list(failures(FILES[name], check_of(name)))
    assert not wrong, "\n".join([f"{len(wrong)} lines fail:", *wrong])


def test_a_failing_line_is_reported_by_file_and_number(tmp_path: Path) -> None:
    path = tmp_path / "asks_when.jsonl"
    lines = (CORPORA / "text" / "asks_when.jsonl").read_text(encoding="utf-8").splitlines()
    wrong = json.loads(lines[0])
    flipped = {key: not value if isinstance(value, bool) else value for key, value in wrong.items()}
    path.write_text(f"{lines[0]}\n{json.dumps(flipped)}\n", encoding="utf-8")
    [report] = failures(path, check_of("text/asks_when"))
    assert "asks_when.jsonl:2: AssertionError" in report
