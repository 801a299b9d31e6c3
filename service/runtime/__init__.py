"""What a process has open, and the transactions of writes."""
