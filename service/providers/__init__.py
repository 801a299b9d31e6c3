"""Embedders and language models: the only package that talks to them."""
