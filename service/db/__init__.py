"""What does every SQL statement look like? Functions take a session and never commit."""
