"""Search, recall and the timeline over HTTP."""
