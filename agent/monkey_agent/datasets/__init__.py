"""Datasets on the agent's machine: fetched once, verified, shared by jobs."""
