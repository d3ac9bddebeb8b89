"""Three people with a clone each, one bare remote, one store, and a second reader who says what a plan must be."""
