"""Logs of jobs: followed, masked, shipped."""
