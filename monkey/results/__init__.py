"""The table of results: rows, groups, export."""
