"""Pilots as pods of Kubernetes: Jobs that kubectl creates, reads and deletes with the login of this user."""
