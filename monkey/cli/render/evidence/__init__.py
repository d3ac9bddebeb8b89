"""Evidence for results: what they came from, and whether the store still holds what was recorded."""
