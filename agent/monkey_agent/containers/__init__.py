"""Containers of jobs: the runtime that a machine has, the images that it pulled, and the command line of a job."""
