"""Problems that a person can cure, and how a command ends because of one: with a sentence, without a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import typer

from service.kit.settings import Settings, SettingsError
from service.launch.problems import LaunchError
from service.providers import endpoints

if TYPE_CHECKING:
    from service.command.rest import Api

CANNOT_START, BAD_SETTINGS = 1, 2


class CommandError(LaunchError):
    """A command that cannot do what it was asked. The message says what to do."""


def settings(*, serving: bool = False) -> Settings:
    """The settings of the environment. Raises SettingsError, also where a model cannot be reached by them; only what
    serves needs its key."""
    read = Settings.from_env(os.environ)
    try:
        endpoints.check(read, or_key=None if serving else "none")
    except ValueError as exc:
        raise SettingsError(f"{exc}.") from exc
    return read


def warn(chosen: Settings) -> Settings:
    """Prints a line for each variable that is misspelt or without effect; returns the settings."""
    for line in (*Settings.misspelt(os.environ), endpoints.find_unused(chosen)):
        if line is not None:
            print(f"loxodon: warning: {line}", file=sys.stderr, flush=True)
    return chosen


@contextmanager
def exit_with_message(cannot: int = CANNOT_START) -> Iterator[None]:
    """Within the block a problem that a person can cure ends the program with a sentence, not with a traceback.
    `cannot`: the exit code where it is not the settings."""
    from service.domain.errors import ServiceError

    try:
        yield
    except SettingsError as exc:
        _leave(str(exc), BAD_SETTINGS)
    except LaunchError as exc:
        _leave(str(exc), cannot)
    except ServiceError as exc:
        _leave(exc.detail, cannot)


@contextmanager
def calling() -> Iterator[Api]:
    """The REST API for the block, within which errors end the program with a sentence."""
    from service.command.rest import open_api  # its HTTP client is slow to import

    with exit_with_message(), closing(open_api()) as rest:
        yield rest


def _leave(message: str, code: int) -> None:
    print(f"\nloxodon: {message}\n", file=sys.stderr, flush=True)
    raise typer.Exit(code)
