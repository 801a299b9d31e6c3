"""What of a message was pasted into it: each module recognises one kind of text, by its form."""
