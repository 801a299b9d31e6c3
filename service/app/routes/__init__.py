"""Routes of the service itself: health, reference lists, the start page."""
