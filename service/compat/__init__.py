"""APIs of other systems, so that their clients work unchanged: mem0 and AutoMem (docs/coming-from.md).

Each file of routes translates a request into calls of this service's verbs, and translates their answer back; there is
no memory logic here. These routes are not in the OpenAPI document, because their contracts belong to the other systems.
"""
