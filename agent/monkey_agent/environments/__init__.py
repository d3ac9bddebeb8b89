"""Environments of jobs: an interpreter and packages, built once, shared."""
