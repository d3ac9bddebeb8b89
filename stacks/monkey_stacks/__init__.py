"""Machines by Pulumi: the engine that runs inline programs, and the programs, one a type of provider."""
