"""Datasets: scanned, hashed, uploaded once, in the layout of a DVC remote."""
