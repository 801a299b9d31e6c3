"""The house rules notice what they forbid, and nothing else."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from service.kit.settings import Settings
from tests import house_rules
from tests.house_rules import ROOT

CODES = ["# see (" + "A9)", '"""' + "R7" + '.16"""', "B6" + ", B7", "as issue" + " 4 says", "def test_" + "r3_02_x()"]
PROSE = ["the F1 score", "an A/B test", "a B-tree", "ISO 8601", "%C3%A4", "#C0FFEE", "gate B-2"]


@pytest.mark.parametrize("line", [*CODES, *PROSE])
def test_identifiers_of_outside_documents(line: str) -> None:
    assert bool(house_rules.CODES.search(line)) is (line in CODES)


@pytest.mark.parametrize(
    ("docstring", "asks"),
    [("What is it?", True), ("How so? So.", True), ('Reads "why?" as a question.', False), ("Done. Why?", False)],
)
def test_docstrings_that_ask(docstring: str, asks: bool) -> None:
    tree = ast.parse(f"'''{docstring}'''")
    assert bool(list(house_rules.questions(ROOT / "x.py", tree))) is asks


def test_aliases() -> None:
    tree = ast.parse("import numpy as np\nfrom a import b as c\nimport a.b")
    assert list(house_rules.aliases(ROOT / "x.py", tree)) == ["x.py:2: a.b as c"]


def test_what_has_a_budget_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = house_rules.sizes()
    assert 0 < sizes["settings"] >= len(Settings.model_fields)
    monkeypatch.setattr(house_rules, "BUDGETS", tmp_path / "budgets.json")
    monkeypatch.setattr(house_rules, "sizes", lambda: sizes)
    house_rules.BUDGETS.write_text(json.dumps({**sizes, "settings": sizes["settings"] - 1}))
    [line] = house_rules.over_budget()
    assert line.startswith(f"{sizes['settings']} settings, at most")


def test_the_tree_has_files() -> None:
    assert Path(__file__) in house_rules.files()
