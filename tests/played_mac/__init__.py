"""A Mac, played on Linux: see `machine.py`."""
