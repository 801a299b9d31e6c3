"""A reader who pastes the blocks of a page, one after the other, into a shell on the machine that runs the service."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import httpx2
import yaml  # type: ignore[import-untyped]

from bench.target import Service
from tests.docs.pages import ROOT, Fence

ADDRESS, KEY = "http://127.0.0.1:8080", "lox_..."
"""What pages print for the reader's own."""
PATIENCE_S, MOMENT_S = 60, 2
BINARIES = Path(sys.executable).parent
PRELUDE = """set -euo pipefail; cd
curl() { command curl --fail-with-body "$@"; }
export -f curl"""
"""So that a request that the service refuses fails, although curl would print the refusal and be content."""
ASSIGNED = re.compile(r"^\s*(?:export )?((?:[A-Z_]+=\S* ?)+)", re.MULTILINE)


@dataclass(slots=True)
class Paster:
    service: Service
    commands: Path
    home: Path
    """Empty at first; what the shell knows is kept here from block to block."""

    def read(self, block: Fence) -> None:
        """Does what the block is for; raises AssertionError with what was printed when it fails."""
        if block.kind == "python":
            compile(block.text, block.place, "exec")
        if block.kind == "json":
            json.loads(block.text)
        elif block.kind == "yaml":
            list(yaml.safe_load_all(block.text))
        elif block.reason is None:
            {"sh": self._sh, "python": self._python, "http": self._http, "sql": self._sql}[block.kind](block)

    def filled(self, text: str) -> str:
        return text.replace(ADDRESS, self.service.url).replace(KEY, self.service.key)

    def _sh(self, block: Fence) -> None:
        names = [each.split("=")[0] for line in ASSIGNED.findall(block.text) for each in line.split()]
        kept = shlex.quote(str(self.home / ".kept"))
        script = f"{self.filled(block.text)}\ndeclare -p {' '.join(names)} 2>/dev/null >>{kept} || true\n"
        self._bash(block, script if names else self.filled(block.text))

    def _python(self, block: Fence) -> None:
        program = self.home / "program.py"
        program.write_text(self.filled(block.text), encoding="utf-8")
        self._bash(block, f"exec {shlex.quote(sys.executable)} {program}")

    def _bash(self, block: Fence, script: str) -> None:
        kept = shlex.quote(str(self.home / ".kept"))
        whole = f"{PRELUDE}\n[ ! -e {kept} ] || . {kept}\n{script}"
        data = self.service.processes.cluster.parent if self.service.processes else self.home
        environment = {
            "PATH": f"{self.commands}:{BINARIES}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "PYTHONPATH": f"{ROOT / 'clients' / 'python'}",
            "LOXODON_DATA_DIR": str(data),
            "LOXODON_PORT": self.service.url.rpartition(":")[2],
            "LOXODON_BOOTSTRAP_API_KEY": self.service.key,
        }
        with subprocess.Popen(
            ["bash", "-c", whole],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                printed, _ = process.communicate(timeout=MOMENT_S if block.forever else PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                assert block.forever, f"{block.place} does not end"
                return
        assert not block.forever, f"{block.place} ended\n{printed[-3000:]}"
        assert process.returncode == 0, f"{block.place}\n{printed[-3000:]}"

    def _http(self, block: Fence) -> None:
        """A method and a path, a body of JSON, and after an arrow the memories in the answer."""
        asked, _, expected = block.text.strip().partition("\n→ ")
        line, _, body = asked.partition("\n")
        method, _, path = line.partition(" ")
        answer = httpx2.request(
            method,
            self.service.url + path,
            headers={"Authorization": f"Bearer {self.service.key}"},
            json=json.loads(body) if body else None,
            timeout=PATIENCE_S,
        )
        assert answer.status_code < 300, f"{block.place}\n{answer.text}"
        if expected:
            results: list[dict[str, Any]] = answer.json()["results"]
            found = sorted(str(each["memory"]) for each in results)
            assert found == sorted(expected.split("; ")), f"{block.place} found {found}"

    def _sql(self, block: Fence) -> None:
        async def run() -> None:
            connection = await asyncpg.connect(self.service.database)
            try:
                await connection.execute(block.text)
            finally:
                await connection.close()

        asyncio.run(run())
