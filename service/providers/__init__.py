"""Embedders, language models and rerankers: the only package that talks to them."""
