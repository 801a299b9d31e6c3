"""Work after the reply: the worker loop, and its tasks. registry.py lists them."""
