"""Statements on working memory."""
