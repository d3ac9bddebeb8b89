"""What runs on a host: sent over SSH as source, for each operation again. Nothing but Python's own library is there."""
