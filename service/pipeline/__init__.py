"""What happens to a text before it is written; profiles.py has the order."""
