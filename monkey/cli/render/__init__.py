"""The formats of all that users read. This package prints nothing, and no other package formats."""
