"""The rehearsal of monkey on a real GPU."""
