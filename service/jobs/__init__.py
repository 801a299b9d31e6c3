"""What happens after the reply? The worker loop and a file per task."""
