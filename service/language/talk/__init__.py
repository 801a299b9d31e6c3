"""Talk between people and assistants: what of it is worth remembering, quoted so that it can be read alone."""

from __future__ import annotations

from service.language.talk.quotes import Quote, read
from service.language.talk.utterance import ASSISTANT, USER, Utterance

__all__ = ["ASSISTANT", "USER", "Quote", "Utterance", "read"]
