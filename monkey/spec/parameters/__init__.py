"""Parameters: ranges, distributions, sampling, conditions, included and excluded rows."""
