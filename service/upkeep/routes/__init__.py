"""The optimisation report over HTTP."""
