"""Comparison of two sweeps, or of two revisions of one: jobs in pairs, intervals, and a verdict."""
