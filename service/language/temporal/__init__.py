"""Times in texts: those a text names, until when it holds, and the window a question asks for."""

from __future__ import annotations

from service.language.temporal.find import find
from service.language.temporal.validity import find_held, tag, validity
from service.language.temporal.window import window

__all__ = ["find", "find_held", "tag", "validity", "window"]
