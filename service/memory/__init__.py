"""What can be done with a memory? The verbs, a file each."""
