"""Code snapshots: which files belong to the code, packed so that the same files give the same bytes."""
