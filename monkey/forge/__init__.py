"""Forges: where commits are reviewed, and where people read what became of them."""
