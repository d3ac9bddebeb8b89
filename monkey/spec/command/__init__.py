"""A job's command: split into words, filled with values, never made code."""
