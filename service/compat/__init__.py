"""APIs of other systems, so that their clients work unchanged: mem0 and AutoMem (docs/coming-from.md).

Each file of routes translates a request into the verbs of this service and their answer back; there is no logic of
memory here. These routes are not in the OpenAPI document: their contracts are those of the other systems.
"""
