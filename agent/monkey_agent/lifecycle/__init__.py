"""The agent's own life: state directory, draining, notices of the cloud, points."""
