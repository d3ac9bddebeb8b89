"""`experiment.yaml`: the model of a sweep, its validation, and its expansion into jobs."""
