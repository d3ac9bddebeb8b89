"""What users write, and what a job is."""
