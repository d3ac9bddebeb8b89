"""A sweep's log: revisions, orders of people, permits to run."""
