"""How commands show things: tables and progress for a person at a terminal, JSON for a program.

A table goes to standard output, progress to standard error and only to a terminal, so that output can be piped.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Protocol

import typer

TIME = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?\+00:00$")
"""A time of the API, which a person reads to the second."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


class Advance(Protocol):
    """Reports progress: what is being worked on, and how many are done of how many (None: not known)."""

    def __call__(self, what: str, done: int, total: int | None = None) -> None: ...


def show_json(value: Any) -> None:
    print(json.dumps(value, indent=1, ensure_ascii=False, default=str))


def show_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], *, empty: str) -> None:
    """A row for each mapping, by the names of the columns; `empty` when there is none."""
    from rich.console import Console
    from rich.table import Table

    if not rows:
        print(empty)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold", no_wrap=column == "id")  # it is copied
    for row in rows:
        table.add_row(*(format_value(row.get(column)) for column in columns))
    # a pipe has no width: nothing is folded there
    Console(width=None if sys.stdout.isatty() else 10_000, markup=False, highlight=False, soft_wrap=False).print(table)


def show_fields(fields: Mapping[str, Any]) -> None:
    """A line for each field."""
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        print(f"{name.replace('_', ' '):<{width}}  {format_value(value)}".rstrip())


def format_value(value: Any) -> str:
    """A value as a person reads it."""
    if value is None or value == []:
        return "-"
    if isinstance(value, list):
        return ", ".join(map(format_value, value))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return TIME.sub(r"\1Z", value)
    return f"{value:.1f}" if isinstance(value, float) else str(value)


@contextmanager
def progress(title: str) -> Iterator[Advance]:
    """A bar on standard error while the block runs, if that is a terminal. SIGTERM then ends the command as Ctrl-C
    does, so that what is unfinished is removed."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not sys.stderr.isatty():
        yield lambda what, done, total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total=None: bar.update(task, description=what, completed=done, total=total)
