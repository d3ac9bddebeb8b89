"""What a pull request's preview runs of a sweep: which jobs, and within which limits."""
