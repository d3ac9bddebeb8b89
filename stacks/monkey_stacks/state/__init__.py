"""Pulumi's state as data: which documents Pulumi may read, and what each type of fleet records there."""
