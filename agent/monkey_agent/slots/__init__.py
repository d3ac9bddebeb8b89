"""Room for jobs on the machine: slots, GPUs, disk space, other agents beside."""
