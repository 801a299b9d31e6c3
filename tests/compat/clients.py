"""The clients by name and version, none patched: where each is installed, and the walk that it takes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.support.commands import install_node, install_python, run

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "compat"
HERE = ROOT / "tests" / "compat"


@dataclass(frozen=True, slots=True)
class ForeignClient:
    """`pins`: the file that names its packages with their hashes."""

    pins: Path
    walk: str

    def prove(self, url: str, key: str, *, folder: str) -> None:
        """Installs it, and walks; raises SystemExit with the output of what failed."""
        home = BUILD / folder
        if self.walk.endswith(".mjs"):
            install_node(home, self.pins)
            walking = ("node", str(shutil.copy(HERE / "walks" / self.walk, home)))  # beside what it imports
        else:
            walking = (install_python(home, self.pins), str(HERE / "walks" / self.walk))
        env = {"LOXODON_URL": url, "LOXODON_API_KEY": key, "MEM0_TELEMETRY": "False"}
        print(run(walking, home, env).strip().splitlines()[-1], flush=True)


CLIENTS = {
    "mem0ai-2.2.1": ForeignClient(ROOT / "requirements" / "compat.txt", "mem0_python.py"),
    "mem0ai-1.0.11": ForeignClient(ROOT / "requirements" / "compat-1.txt", "mem0_python.py"),
    "mem0ai-npm-3.3.1": ForeignClient(HERE / "package-lock.json", "mem0_node.mjs"),
}
"""By name and version. The last needs node."""
