"""The plan, pure: desired and observed state in, changes with reasons out."""
