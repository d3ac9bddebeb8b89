"""Checks: finished jobs are run once more, and compared with what was recorded."""
