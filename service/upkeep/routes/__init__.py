"""Routes for the optimisation report."""
