"""Facts of conversations and of stored memories, read by rules alone."""

from __future__ import annotations

from service.language.facts.conversation import extract
from service.language.facts.echo import is_echo
from service.language.facts.fact import CONFIDENCE, Certainty, Message, Polarity, StatedFact
from service.language.facts.reading import read

__all__ = ["CONFIDENCE", "Certainty", "Message", "Polarity", "StatedFact", "extract", "is_echo", "read"]
