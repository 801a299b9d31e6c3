"""Route for MCP."""
