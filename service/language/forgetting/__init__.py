"""Requests to forget: which messages are some, what they speak of, and which texts they mean."""
