"""The agent's own life: state directory, incarnations, draining, notices of the cloud."""
