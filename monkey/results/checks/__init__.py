"""Checks, once they have ended: what was recorded against what came out now."""
