"""Sweeps at work: their progress, how they start, and why one is stuck."""
