"""The uploads of an attempt: outputs, metrics and their history, and what it writes while it runs."""
