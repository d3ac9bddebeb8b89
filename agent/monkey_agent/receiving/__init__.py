"""Receiving: metrics that a job sends as line protocol to its own sockets, written into a metrics file of the job."""
