"""The lock on a fleet's state, so that two applies never change the same machines."""
