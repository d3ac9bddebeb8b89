"""Posting what came of sweeps at a forge: statuses of commits, and a comment on the pull request."""
