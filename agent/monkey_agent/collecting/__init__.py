"""Collecting: metrics that a job writes in other forms than ours, read as they come, into a metrics file of the job."""
