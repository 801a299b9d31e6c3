"""Talk between people and assistants: finds the passages worth remembering, and quotes them so that they can be read
alone."""

from __future__ import annotations

from service.language.talk.quotes import ASSISTANT, USER, Utterance, read

__all__ = ["ASSISTANT", "USER", "Utterance", "read"]
