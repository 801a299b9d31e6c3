"""What every route shares: the caller, limits, paging, errors, bodies."""
