"""The pull loop: sweeps follow a branch of a git repository."""
