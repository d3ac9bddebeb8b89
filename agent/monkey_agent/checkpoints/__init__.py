"""Checkpoints: captured while the job runs, kept here and in the store, restored for the next attempt."""
