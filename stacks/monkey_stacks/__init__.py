"""Machines by Pulumi: the engine that runs inline programs, with its state in the project's own store."""
