"""Detection and redaction of secrets and personal data in texts."""

from __future__ import annotations

from service.language.pii.findings import Finding, placeholder
from service.language.pii.identities import holds_secret
from service.language.pii.redact import Redacted, find, redact, redact_json

__all__ = ["Finding", "Redacted", "find", "holds_secret", "placeholder", "redact", "redact_json"]
