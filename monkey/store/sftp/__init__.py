"""The store in a directory on an SSH host. Only `open.py` is meant for others; asyncssh is imported here alone."""
