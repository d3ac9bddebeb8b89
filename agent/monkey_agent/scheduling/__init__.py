"""Which job next: the queue of sweeps, candidates, claims, dispatch to slots."""
