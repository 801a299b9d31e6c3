"""Detection and redaction of secrets and personal data in texts."""

from __future__ import annotations

from service.redaction.detection.findings import Finding, placeholder
from service.redaction.detection.redact import Redacted, find, holds_secret, redact, redact_json

__all__ = ["Finding", "Redacted", "find", "holds_secret", "placeholder", "redact", "redact_json"]
