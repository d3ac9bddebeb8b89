"""The start of an agent from a bundle, on a host or on a rented machine."""
