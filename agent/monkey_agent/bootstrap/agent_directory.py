"""The files of an agent's directory on a host."""

from __future__ import annotations

#: In the agent's directory: its arguments and variables; and, readable for its user alone, variables that are secret.
SETTINGS, CREDENTIALS = "settings.json", "credentials.json"
