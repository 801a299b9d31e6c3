"""Talk between people and assistants: finds the passages worth remembering, and quotes them so that they can be read
alone."""

from __future__ import annotations

from service.language.talk.quotes import read
from service.language.talk.utterance import ASSISTANT, USER, Utterance

__all__ = ["ASSISTANT", "USER", "Utterance", "read"]
