"""Who lives: what an agent sees of the others' heartbeats, and the listing of them that a large fleet shares."""
