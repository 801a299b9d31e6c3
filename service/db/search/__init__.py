"""Every statement that answers a question: candidates, their features, and what a scope lets through."""
