"""Facts: what results come from, collected once in an agent's life and stored once under their hash."""
