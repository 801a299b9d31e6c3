"""Puts everything together: routers, jobs and the OpenAPI document."""
