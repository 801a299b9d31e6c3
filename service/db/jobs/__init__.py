"""The durable queue, its timetable, long operations and upkeep."""
