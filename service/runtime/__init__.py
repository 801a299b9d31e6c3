"""Resources of a process, and the transactions of writes."""
