"""Machines that specs choose of a provider: what may be chosen, and the fleets that follow from it."""
