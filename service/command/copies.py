"""`loxodon backup` and `restore` of the embedded database."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from service.command.output import AsJson, progress, show_fields, show_json
from service.command.problems import errors_in_a_sentence, settings


def backup(
    folder: Annotated[Path, typer.Argument(help="A folder that is not there yet.")], as_json: AsJson = False
) -> None:
    """Copy the embedded database, all workspaces and keys, while the service goes on."""
    from service.launch import backup

    began = time.monotonic()
    with errors_in_a_sentence(), progress("backup") as advance:
        size = backup.backup(settings(), folder.absolute(), advance)
    found = {"folder": str(folder), "bytes": size, "took_s": round(time.monotonic() - began, 1)}
    show_json(found) if as_json else show_fields(found)


def restore(folder: Annotated[Path, typer.Argument(help="The folder of a backup.")], as_json: AsJson = False) -> None:
    """Make the embedded database in LOXODON_DATA_DIR, where there is none, from a backup."""
    from service.launch import backup

    began = time.monotonic()
    with errors_in_a_sentence(), progress("restore") as advance:
        backup.restore(settings(), folder.absolute(), advance)
        target = settings().data_dir
    found = {"data_dir": str(target), "took_s": round(time.monotonic() - began, 1)}
    show_json(found) if as_json else show_fields(found)
