"""Stand-ins for model providers; everything else in the tests is real."""
