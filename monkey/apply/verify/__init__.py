"""Verification: what the store holds, compared with every digest that was recorded of it."""
