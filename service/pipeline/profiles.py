"""Which stages does a text pass, in which order?

`CONTENT`: one text that is to become one memory (R4.01; the type comes last because it profits from nothing behind
it but the words, which only the write needs). `AGAIN`: what is repeated when the neighbours changed between the
decision and the lock. `RECORD`: a message stored as it was said: no judgement, no model but the embedder, never an
expiry (B10).
"""

from __future__ import annotations

from collections.abc import Mapping

from service.pipeline import (
    annotate,
    category,
    dedup,
    embed,
    importance,
    judge,
    kind,
    pii,
    shorten,
    size,
    temporal,
    words,
)
from service.pipeline.run import Stage, Together

CONTENT: tuple[Stage, ...] = (
    size.check,
    pii.redact,
    shorten.summarise,
    embed.embed,
    dedup.compare,
    judge.decide,
    annotate.ask,
    importance.rate,
    temporal.date,
    category.name,
    kind.classify,
    words.weigh,
)

AGAIN: tuple[Stage, ...] = CONTENT[CONTENT.index(dedup.compare) :]

ANNOTATED: tuple[Stage, ...] = CONTENT[CONTENT.index(annotate.ask) :]

RECORD: tuple[Stage, ...] = (
    size.check,
    pii.redact,
    embed.embed,
    dedup.look_up,
    importance.rate,
    temporal.date,
    category.name,
    kind.classify,
    words.weigh,
)

FACT: tuple[Stage, ...] = (
    embed.embed,
    importance.rate,
    temporal.date,
    category.name,
    kind.classify,
    words.weigh,
)
"""A fact of a conversation, redacted already; what becomes of it is ruled afterwards."""

REVISED: tuple[Stage, ...] = (
    size.check,
    pii.redact,
    embed.embed,
    temporal.date,
    category.name,
    kind.classify,
    words.weigh,
)
"""A text in the place of an older one: importance is what it was, and nobody asks whether it is a duplicate."""

TOGETHER: Mapping[Stage, Together] = {embed.embed: embed.embed_all}
