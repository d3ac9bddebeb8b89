"""The verbs of `monkey`, one file a verb."""
