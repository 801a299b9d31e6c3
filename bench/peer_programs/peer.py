"""What the programs of bench.peers share: the embedding model, and calls as JSON lines.

A line in: {"id", "verb": "store" | "search", "arguments"}; a line out: {"id", "result"} or {"id", "error"}. It runs in
an environment of its own, without this project's packages.
"""

# mypy: ignore-errors
from __future__ import annotations

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

DIMENSION = 384
THREADS = 16


class Model:
    """The files of Loxodon's local model, run in the same way; texts are cut at its window."""

    def __init__(self) -> None:
        folder = Path(os.environ["PEER_MODEL"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        model = next(each for each in (folder / "model.onnx", folder / "onnx" / "model.onnx") if each.exists())
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(256)

    def vector(self, text: str) -> list[float]:
        ids = np.asarray([self._tokenizer.encode(text).ids], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        first = self._session.run(None, feed)[0][0, 0]
        return (first / np.linalg.norm(first)).tolist()


def serve(system: object) -> None:
    """Answers calls until the input ends; several at once."""
    out, lock = sys.stdout, threading.Lock()
    sys.stdout = sys.stderr  # what a library prints is no answer

    def say(answer: dict[str, object]) -> None:
        with lock:
            print(json.dumps(answer), file=out, flush=True)

    def call(line: str) -> None:
        request = json.loads(line)
        try:
            result = getattr(system, request["verb"])(**request["arguments"])
        except Exception as exc:
            say({"id": request["id"], "error": f"{type(exc).__name__}: {exc}"[:500]})
        else:
            say({"id": request["id"], "result": result})

    say({"id": 0, "result": "ready"})
    with ThreadPoolExecutor(THREADS) as pool:
        for line in sys.stdin:
            pool.submit(call, line)
