"""`make eval` prints every report, and names missing data instead of failing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.evals.__main__ import FAILED, NO_FOLDER, REPORTS, main


def test_a_missing_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nowhere")]) == NO_FOLDER
    assert "nowhere" in capsys.readouterr().out


def test_missing_files_are_named_and_the_rest_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"text": "We decided to use Postgres.", "type": "Decision"}, {"text": "I like tea.", "type": "Preference"}]
    (tmp_path / "memtype-dev.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert main([str(tmp_path), "--only", "pii", "memtype"]) == 0
    printed = capsys.readouterr().out
    assert "== pii (pii-dev.jsonl)\nnot there:" in printed
    assert "== memtype (memtype-dev.jsonl)" in printed
    assert "accuracy" in printed


def test_a_report_that_fails_does_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pii-dev.jsonl").write_text('{"no": "text"}\n')
    (tmp_path / "memtype-dev.jsonl").write_text('{"text": "I like tea.", "type": "Preference"}\n')
    assert main([str(tmp_path), "--only", "pii", "memtype"]) == FAILED
    assert "accuracy" in capsys.readouterr().out


def test_every_module_is_named() -> None:
    folder = Path(main.__code__.co_filename).parent
    modules = {path.stem for path in folder.glob("*.py")} - {
        "__init__",
        "__main__",
        "scoring",
        "stored_facts",
        "pronouns",
    }
    assert modules <= set(REPORTS)
