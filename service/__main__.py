"""`python -m service <command>`: see cli.py."""

import sys

try:
    from service.command.cli import app
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.split(".")[0] == "service":
        raise
    sys.exit(
        f"loxodon: {sys.executable} does not have the package {missing.name!r}. In the repository `make run` installs "
        "everything; then use .venv/bin/loxodon, or .venv/bin/python."
    )

app(prog_name="loxodon")
