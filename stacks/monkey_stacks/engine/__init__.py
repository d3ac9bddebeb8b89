"""Pulumi's engine: inline programs, state in the store, plugins, one supervised process."""
