"""The project as it stands: its store, its specs, its fleets, and the state that specs desire."""
