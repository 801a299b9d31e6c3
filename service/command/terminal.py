"""What commands share at the terminal: settings and errors, tables and progress for a person, JSON for a program.

A problem that a person can cure ends a command with a sentence, without a traceback. A table goes to standard output,
progress to standard error and only to a terminal, so that output can be piped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from service.domain.errors import EmbeddingError, ServiceError
from service.kit.settings import Settings, SettingsError
from service.launch.problems import BAD_SETTINGS, LaunchError
from service.providers import model_files, presets

if TYPE_CHECKING:
    from service.command.rest import Api
import json
import re
import signal
import threading
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol

CANNOT_START = 1


class CommandError(LaunchError):
    """A command that cannot do what it was asked. The message says what to do."""


def settings(*, serving: bool = False) -> Settings:
    """The settings of the environment. Raises SettingsError, also where a model cannot be reached by them; only what
    serves needs its key, or its files. Raises EmbeddingError where these were not installed."""
    read = Settings.from_env(os.environ)
    try:
        presets.check_endpoints(read, or_key=None if serving else "none")
    except ValueError as exc:
        raise SettingsError(f"{exc}.") from exc
    if serving and presets.embedder_endpoint(read) is None:
        try:
            model_files.load(Path(read.embedder.model)) if read.embedder.model else model_files.find_installed()
        except EmbeddingError as exc:
            if read.embedder.model is None:
                raise
            raise SettingsError(f"LOXODON_EMBEDDER_MODEL: {exc.detail}") from exc
    return read


def warn(chosen: Settings) -> Settings:
    """Prints a line for each variable that is misspelt or without effect; returns the settings."""
    for line in (*Settings.misspelt(os.environ), presets.find_unused(chosen)):
        if line is not None:
            print(f"loxodon: warning: {line}", file=sys.stderr, flush=True)
    return chosen


@contextmanager
def exit_with_message(cannot: int = CANNOT_START) -> Iterator[None]:
    """Within the block a problem that a person can cure ends the program with a sentence, not with a traceback.
    `cannot`: the exit code where it is not the settings."""
    try:
        yield
    except SettingsError as exc:
        _leave(str(exc), BAD_SETTINGS)
    except LaunchError as exc:
        _leave(str(exc), cannot)
    except ServiceError as exc:
        _leave(exc.detail, cannot)
    except OSError as exc:
        if exc.filename is None:
            raise
        _leave(f"{exc.filename}: {exc.strerror}.", cannot)


@contextmanager
def calling() -> Iterator[Api]:
    """The REST API for the block, within which errors end the program with a sentence."""
    from service.command.rest import open_api  # its HTTP client is slow to import

    with exit_with_message(), closing(open_api()) as rest:
        yield rest


def _leave(message: str, code: int) -> None:
    print(f"\nloxodon: {message}\n", file=sys.stderr, flush=True)
    raise typer.Exit(code)


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
    """A bar on standard error while the block runs, if that is a terminal. SIGTERM and SIGHUP then end the command as
    Ctrl-C does, so that what is unfinished is removed."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if threading.current_thread() is threading.main_thread() and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    if not sys.stderr.isatty():
        yield lambda what, done, total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total=None: bar.update(task, description=what, completed=done, total=total)
