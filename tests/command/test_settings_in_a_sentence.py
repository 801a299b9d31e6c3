"""Wrong settings end every command within a second, with one sentence and exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.command.cli import app

ROOT = Path(__file__).parents[2]

WRONG = {
    "LLM_PROVIDER: there is no provider 'anthropc'. Known are openai": {"LLM_PROVIDER": "anthropc"},
    "ANTHROPIC_API_KEY (or LLM_API_KEY) is not set": {"LLM_PROVIDER": "claude"},
    "GOOGLE_API_KEY (or LLM_API_KEY) is not set": {"LLM_PROVIDER": "gemini"},
    "LLM_BASE_URL is not set: the provider azure_openai": {"LLM_PROVIDER": "azure"},
    "LLM_BASE_URL is not set: the provider custom": {"LLM_PROVIDER": "custom"},
    "LLM_MODEL is not set: the provider custom": {"LLM_PROVIDER": "custom", "LLM_BASE_URL": "http://127.0.0.1:9/v1"},
    "name of a model; LLM_PROVIDER names": {"ANTHROPIC_API_KEY": "a", "LLM_BASE_URL": "http://127.0.0.1:9/v1"},
    "needs the name of a model; LLM_PROVIDER": {"GOOGLE_API_KEY": "g", "LLM_BASE_URL": "http://127.0.0.1:9/v1"},
    "LLM_BASE_URL must begin with http": {"LLM_MODEL": "m", "LLM_BASE_URL": "localhost:11434/v1"},
    "OPENAI_API_KEY (or EMBEDDER_API_KEY) is not set": {"LOXODON_EMBEDDER_PROVIDER": "openai"},
    "EMBEDDER_MODEL is not set: the provider anthropic": {"EMBEDDER_PROVIDER": "claude", "ANTHROPIC_API_KEY": "a"},
    "LOXODON_EMBEDDER_MODEL: There is no model.onnx or onnx/model.onnx in /nowhere.": {"EMBEDDER_MODEL": "/nowhere"},
    "LOXODON_TRUSTED_PROXIES: '10.0.0.300' is not a network": {"LOXODON_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.300"},
    "LOXODON_TRUSTED_PROXIES: '' is not a network": {"LOXODON_TRUSTED_PROXIES": "127.0.0.1,,::1"},
    "LOXODON_DATABASE_URL: has more than one @": {"LOXODON_DATABASE_URL": "postgresql://u:se@cret@127.0.0.1/db"},
    "LOXODON_WORKER_DATABASE_URL: has the port 99999": {"LOXODON_WORKER_DATABASE_URL": "postgresql://u:p@h:99999/db"},
    "EMBEDDER_PROVIDER: there is no provider 'chroma'": {"EMBEDDER_PROVIDER": "chroma"},
}
SERVING = ("run", "api", "worker")
COMMANDS = (("run",), ("api",), ("worker",), ("migrate",), ("doctor",), ("wait-for-schema",))


@pytest.mark.parametrize("sentence", WRONG)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_every_command_refuses(command: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if "LLM" in each or "EMBEDDER" in each or each.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    for name, value in WRONG[sentence].items():
        monkeypatch.setenv(name, value)
    if ("_API_KEY (" in sentence or "model.onnx" in sentence) and command[0] not in SERVING:
        pytest.skip("what does not serve needs neither key nor model")
    ended = CliRunner().invoke(app, command)
    assert ended.exit_code == 2
    [line] = ended.stderr.strip().splitlines()
    assert line.startswith("loxodon: ")
    assert sentence in line
    assert "cret" not in line


def test_it_takes_no_restarts_and_no_time(tmp_path: Path) -> None:
    env = {**os.environ, "LLM_PROVIDER": "anthropc", "LOXODON_DATA_DIR": str(tmp_path), "LOXODON_PORT": "1"}
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "service", "run"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=30
    )
    assert ended.returncode == 2
    assert time.monotonic() - began < 5, "a second, on a machine with nothing else to do"
    assert len(ended.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_has_no_effect_is_named_and_the_start_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from service.command import terminal

    for name in [each for each in os.environ if "LLM" in each or each.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LLM_MODEL", "gpt-6-luna")
    monkeypatch.setenv("LOXODON_LLM_MODLE", "x")
    assert terminal.warn(terminal.settings()).llm.model == "gpt-6-luna"
    misspelt, unused = capsys.readouterr().err.splitlines()
    assert misspelt == "loxodon: warning: LOXODON_LLM_MODLE is not a setting: did you mean LOXODON_LLM_MODEL?"
    assert unused.startswith("loxodon: warning: LLM_MODEL is set, but there is no language model: ")
    monkeypatch.setenv("LLM_PROVIDER", "none")
    terminal.warn(terminal.settings())
    assert "LLM_MODEL" not in capsys.readouterr().err.replace("LOXODON_LLM_MODEL", "")
