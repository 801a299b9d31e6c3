"""Every statement that answers a query: candidates, their features, and what a scope lets through."""
