"""Links to the page of `monkey web` that verbs print."""
