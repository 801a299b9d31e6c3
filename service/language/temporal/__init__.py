"""Times in texts: those a text names, until when it holds, and the window a question asks for."""

from __future__ import annotations

from service.language.temporal.find import find
from service.language.temporal.gate import may_have_time
from service.language.temporal.recogniser import RecogniserNeeded, never_asked, warm
from service.language.temporal.tag import tag
from service.language.temporal.validity import held, validity
from service.language.temporal.window import window

__all__ = ["RecogniserNeeded", "find", "held", "may_have_time", "never_asked", "tag", "validity", "warm", "window"]
