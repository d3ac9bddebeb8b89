"""What differs between two jobs, or two revisions of sweeps: inputs, code line by line, data, machines, results."""
