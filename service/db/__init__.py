"""Every SQL statement. Functions take a session and never commit."""
