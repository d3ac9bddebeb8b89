"""The state of jobs, sweeps and agents, derived from what the store holds."""
