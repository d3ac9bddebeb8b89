"""The agent's bundle: our wheel and the few that it needs, packed by content, unpacked on machines."""
