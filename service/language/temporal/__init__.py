"""Times in texts: those a text names, until when it holds, and the window a question asks for."""

from __future__ import annotations

from service.language.temporal.find import find
from service.language.temporal.validity import find_held, tag, validity
from service.language.temporal.window import window
from service.language.temporal.words import may_have_time

__all__ = ["find", "find_held", "may_have_time", "tag", "validity", "window"]
