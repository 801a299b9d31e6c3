"""What should become of a fact next to what is known? Verdicts only, writes nothing."""
