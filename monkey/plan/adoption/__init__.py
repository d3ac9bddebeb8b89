"""Adopted results: which finished job stands for a wanted one, by the project's log and by `equivalences`."""
