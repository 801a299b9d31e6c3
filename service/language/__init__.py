"""What does a piece of text say? Pure functions over text: no I/O, no settings, no database."""
