"""A job: its values, its id, its recipe, its time."""
