"""The stages of a text before it is written; stages.py has their order."""
