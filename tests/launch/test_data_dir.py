"""The folder lock has one holder at a time, and a dead process holds nothing."""

from __future__ import annotations

from pathlib import Path

from service.launch.data_dir import FolderLock


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
    assert second.read_note() == ""
    first.acquire()
    first.note("a long first note")
    first.note("http://127.0.0.1:8080")
    assert second.read_note() == "http://127.0.0.1:8080"
    first.release()
