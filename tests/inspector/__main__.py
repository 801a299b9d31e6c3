"""Lets the MCP Inspector look at a running service, over HTTP and over standard input: `make mcp`. Needs node.

The inspector is pinned in tests/inspector/package-lock.json and lies in build/inspector. It checks what the service
sends against the protocol, and with --strict whether the schemas of the tools are such as all clients take.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench import target

ROOT = Path(__file__).resolve().parents[2]
HERE, BUILD = ROOT / "tests" / "inspector", ROOT / "build" / "inspector"
CHECKS = (
    ("tools/list", "--strict"),
    ("tools/call", "--tool-name", "remember", "--tool-arg", "content=Ida keeps bees", "user_id=ida"),
    ("tools/call", "--tool-name", "recall", "--tool-arg", "query=What does Ida keep?", "user_id=ida"),
    ("resources/list",),
    ("resources/templates/list",),
)


def install() -> None:
    """Installs what package-lock.json pins, unless it is there."""
    wanted = (HERE / "package-lock.json").read_bytes()
    done = BUILD / "installed"
    if done.exists() and done.read_bytes() == wanted:
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, BUILD / name)
    subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=BUILD, check=True)
    done.write_bytes(wanted)


def inspect(service: list[str], *check: str) -> Any:
    """What the inspector prints, read as JSON; raises SystemExit with its words when it finds a fault."""
    command = [str(BUILD / "node_modules" / ".bin" / "mcp-inspector"), "--cli", *service, "--method", *check]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(check)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return json.loads(done.stdout)


def main() -> int:
    install()
    with target.started() as service:
        header = f"Authorization: Bearer {service.key}"
        over_http = [f"{service.url}/mcp", "--transport", "http", "--header", header]
        env = {"PYTHONPATH": str(ROOT), "LOXODON_URL": service.url, "LOXODON_API_KEY": service.key}
        given = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        over_stdio = [sys.executable, "-m", "service", "mcp", "--transport", "stdio", *given]
        for way, words in (("HTTP", over_http), ("standard input", over_stdio)):
            for check in CHECKS:
                print(f"{way}: {' '.join(check)}", flush=True)
                found = inspect(words, *check)
                if "recall" in check and "Ida keeps bees" not in str(found):
                    raise SystemExit(f"recall found nothing: {found}")
    print(f"The inspector found no fault in {len(CHECKS)} checks, over HTTP and over standard input.")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    sys.exit(main())
