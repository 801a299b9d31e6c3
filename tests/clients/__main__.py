"""Builds the Python client, installs it in a clean environment outside the repository, and runs its README:
`make clients`. It also lets mypy read the README's session, with the types that the installed package ships.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench import target
from tests.clients.wheel import build_wheel, first_session, installed
from tests.support.commands import run


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="loxodon-client-") as name:
        folder = Path(name)
        wheel = build_wheel(folder)
        python = installed(wheel, folder / "env")
        print(f"{wheel.name}: installed in an empty environment", flush=True)
        with target.started() as service:
            first_session(python, folder, service, {})
        options = ["--config-file=", "--strict", "--python-executable", python, "--cache-dir", str(folder / "mypy")]
        run([sys.executable, "-m", "mypy", *options, "session.py"], folder)
    print("The README's session ran, and its types are right.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
