"""Clients generated from the OpenAPI document by the common generators, type-checked, and run against the service."""
