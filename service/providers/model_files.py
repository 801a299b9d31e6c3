"""Finds and verifies the files of the local embedding model.

They come from a folder named in the settings, or from where model_wheel.py has put them. Both files are compared with
the publisher's hashes before anything parses them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from service.domain.errors import EmbeddingError
from service.kit import shipped
from service.providers import model_wheel


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The verified bytes of both files: what was hashed is what gets loaded."""

    model: bytes
    tokenizer: bytes


def load(model_dir: Path | None) -> ModelFiles:
    """The verified files, after about 0.1 s of hashing. Raises EmbeddingError when one is missing or different."""
    folder = model_dir if model_dir is not None else find_installed()
    model = _read(folder, "model.onnx", "onnx/model.onnx")
    tokenizer = _read(folder, "tokenizer.json").replace(b"\r", b"")
    _check(model, model_wheel.MODEL_SHA256, f"The model in {folder}")
    _check(tokenizer, model_wheel.TOKENIZER_SHA256, f"The tokenizer in {folder}")
    return ModelFiles(model, tokenizer)


def find_installed() -> Path:
    """The folder of the files; raises EmbeddingError when there is none."""
    spec = find_spec(model_wheel.FOLDER)  # a top-level name: this imports nothing
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (folder := Path(place)).is_dir():
            return folder
    raise EmbeddingError(
        "The local embedding model is not installed. Name a folder with model.onnx and tokenizer.json in "
        f"LOXODON_EMBEDDER_MODEL, or install it:\n\n  {shipped.binaries_command()}"
    )


def _read(folder: Path, *names: str) -> bytes:
    for name in names:
        try:
            return (folder / name).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as exc:
            raise EmbeddingError(f"{name} in {folder} cannot be read: {exc.strerror}.") from exc
    raise EmbeddingError(f"There is no {' or '.join(names)} in {folder}.")


def _check(content: bytes, expected: str, what: str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if digest != expected:
        raise EmbeddingError(
            f"{what} is not the one this release was measured with: sha256 {digest}, expected {expected}. "
            "Its vectors would not match those already stored."
        )
