"""Which parts of a text are secret or personal, and what does it look like without them?"""

from __future__ import annotations

from service.language.pii.findings import Finding
from service.language.pii.redact import Redacted, find, redact, redact_json

__all__ = ["Finding", "Redacted", "find", "redact", "redact_json"]
