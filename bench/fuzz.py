"""Generated requests against a running service, as three callers, with every check of schemathesis.

`make fuzz` sends 20,000 and more; the test suite sends what fits into a minute, the same ones each time. A caller
without a key, one that may only read, and one with every right: none may get an answer above 499 or one that the
OpenAPI document does not describe. What it calls valid is refused for a listed reason only (bench/fuzz_exceptions.py).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.target import Service, arguments, chosen

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "bench" / "fuzz.toml"
GENERATED = re.compile(r"^\s*(\d+) generated", re.MULTILINE)
FUZZING = "examples,fuzzing"
ENVIRONMENT = {"LOXODON_LOG_LEVEL": "warning"}

ALL_PHASES = "examples,coverage,fuzzing,stateful"
"""`coverage` alone sends some 11,000 requests: every boundary of every field."""


@dataclass(frozen=True, slots=True)
class FuzzCaller:
    """Who sends: the key, which phases of schemathesis, and how many requests for each operation while fuzzing."""

    name: str
    key: str | None
    phases: str
    examples: int


@dataclass(frozen=True, slots=True)
class FuzzRun:
    """What one caller sent, and whether everything held."""

    caller: str
    cases: int
    passed: bool
    seconds: float
    printed: str


def main(options: Sequence[str] | None = None) -> int:
    """Prints a line for each caller, and what schemathesis found; returns 1 when something did not hold."""
    parser = arguments(__doc__)
    parser.add_argument("--examples", type=int, default=50, help="requests per operation with every right")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(options)
    total, failed = 0, False
    with chosen(given, ENVIRONMENT) as service:
        warm(service.url)
        callers = (
            FuzzCaller("no key", None, FUZZING, given.examples // 4),
            FuzzCaller("read-only key", read_only_key(service), FUZZING, given.examples // 2),
            FuzzCaller("every right", service.key, ALL_PHASES, given.examples),
        )
        for caller in callers:
            run = fuzz(service.url, caller, given.seed)
            held = "all held" if run.passed else f"FAILED\n{run.printed}"
            print(f"{run.caller}: {run.cases} requests in {run.seconds:.0f} s, {held}", flush=True)
            total, failed = total + run.cases, failed or not run.passed
    print(f"{total} requests in all")
    return int(failed)


def fuzz(url: str, caller: FuzzCaller, seed: int) -> FuzzRun:
    began = time.monotonic()
    options: tuple[str, ...] = ("--checks", "all", "--phases", caller.phases, "--max-examples", str(caller.examples))
    options += ("--seed", str(seed), "--generation-database", "none", "--continue-on-failure", "--no-shrink")
    options += ("--suppress-health-check", "filter_too_much")  # two path parameters leave few generated requests
    key = ("--header", f"Authorization: Bearer {caller.key}") if caller.key else ()
    done = subprocess.run(
        [
            *SCHEMATHESIS,
            "--config-file",
            str(CONFIG),
            "run",
            f"{url}/openapi.json",
            "--no-color",
            "--request-timeout",
            "60",
            *options,
            *key,
        ],
        cwd=ROOT,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "bench.fuzz_exceptions"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    generated = GENERATED.search(done.stdout)
    cases = int(generated[1]) if generated else 0
    return FuzzRun(caller.name, cases, done.returncode == 0, time.monotonic() - began, done.stdout)


SCHEMATHESIS = (sys.executable, "-c", "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())")


def warm(url: str) -> None:
    """Has the document made, which takes longer on a busy machine than schemathesis waits."""
    with urllib.request.urlopen(f"{url}/openapi.json", timeout=120) as answer:
        answer.read()


def read_only_key(service: Service) -> str:
    body = json.dumps({"name": "fuzz", "rights": ["memory:read"]}).encode()
    headers = {"Authorization": f"Bearer {service.key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{service.url}/v1/api-keys", body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["api_key"])


if __name__ == "__main__":
    sys.exit(main())
