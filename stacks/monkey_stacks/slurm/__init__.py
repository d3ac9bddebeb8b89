"""Pilots in a queue of Slurm: sbatch, squeue and scancel of a login node, or of this machine."""
