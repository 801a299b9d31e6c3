"""The socket folder fits into a socket address and belongs to us; the data folder has one holder at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.launch import postgres
from service.launch.data_dir import FolderLock
from service.launch.postgres import Server
from service.launch.problems import LaunchError
from service.launch.programs import Account


@pytest.mark.parametrize(
    ("path", "fits"),
    [
        ("/data/socket", True),
        ("/a folder/with spaces", True),
        ("/" + "x" * 92, True),  # 93 + 14 characters of "/.s.PGSQL.5432" = 107
        ("/" + "x" * 93, False),
        ("/" + "ä" * 47, False),  # bytes count, not characters
        ("/a,b", False),
        ('/a"b', False),
    ],
)
def test_fits(path: str, fits: bool) -> None:
    assert postgres.fits_socket(Path(path)) is fits


@pytest.fixture
def runtime_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a path short enough for a socket; that of tmp_path is not in every process of a test run."""
    with tempfile.TemporaryDirectory(prefix="lx-", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


def test_the_fallback_is_the_same_at_every_start(tmp_path: Path, runtime_dir: Path) -> None:
    (long := tmp_path / ("x" * 100)).mkdir()
    found = postgres.socket_folder(long, Account())
    assert found == postgres.socket_folder(long, Account())
    assert found.parent == runtime_dir
    assert found.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("runtime_dir")
def test_a_planted_link_is_refused(tmp_path: Path) -> None:
    (long := tmp_path / ("x" * 100)).mkdir()
    planted = postgres.socket_folder(long, Account())
    planted.rmdir()
    planted.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(LaunchError, match="not a folder of yours"):
        postgres.socket_folder(long, Account())


def test_url_quotes_what_a_path_may_hold() -> None:
    url = Server(Path("/a b/100%&x"), 5432, {"me": "hush"}).url("me")
    assert url == "postgresql+asyncpg://me:hush@/loxodon?host=%2Fa%20b%2F100%25%26x&port=5432"


# -- the lock of the data folder ---------------------------------------------------------------------------------------


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    first, second = FolderLock(tmp_path / "lock"), FolderLock(tmp_path / "lock")
    assert first.acquire()
    assert first.acquire(), "again is fine"
    assert not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_the_loser_reads_the_note(tmp_path: Path) -> None:
    first, second = FolderLock(tmp_path / "lock"), FolderLock(tmp_path / "lock")
    assert second.read_note() == {}
    first.acquire()
    first.note(url="a long first note")
    first.note(url="http://127.0.0.1:8080")
    assert second.read_note() == {"url": "http://127.0.0.1:8080"}
    first.release()
