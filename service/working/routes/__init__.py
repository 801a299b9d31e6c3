"""Working memory over HTTP."""
