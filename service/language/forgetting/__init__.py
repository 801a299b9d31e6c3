"""Requests to forget: recognises them in messages, parses what they refer to, and finds the texts they mean."""
