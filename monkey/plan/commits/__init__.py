"""Commits: where one stands to the one that was applied last, and what an apply refuses for that."""
