"""`python -m service <command>`: see cli.py."""

from service.cli import app

app(prog_name="loxodon")
