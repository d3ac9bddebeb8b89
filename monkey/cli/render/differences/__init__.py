"""How differences of jobs and revisions look."""
