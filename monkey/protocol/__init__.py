"""The protocol of agents and people in the store: layout, logs of entries, claims, heartbeats, journals."""
