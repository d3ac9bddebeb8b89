"""The page that `monkey web` serves: sweeps, jobs, curves, logs and machines, live in a browser."""
