"""The stages of a text before it is written; profiles.py has their order."""
