"""A job's record: its attempts, what agents ship while it runs, and the facts that a result came from."""
