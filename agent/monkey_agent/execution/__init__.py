"""One attempt at a job: workspace, variables, process, outputs, end."""
