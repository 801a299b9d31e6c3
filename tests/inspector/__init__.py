"""The MCP Inspector against the running service."""
