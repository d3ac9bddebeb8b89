"""Reports: the page of some sweeps in one file, which needs no server and no network."""
