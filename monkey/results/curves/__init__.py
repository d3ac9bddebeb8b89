"""Curves: what jobs logged, step by step, read from the store for commands and for pages."""
