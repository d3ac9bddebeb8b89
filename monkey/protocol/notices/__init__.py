"""Notices of a sweep's end or stall: their names, and the logs that record their sending."""
