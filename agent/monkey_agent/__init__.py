"""The agent: the daemon that takes jobs from the store and runs them on its machine."""
