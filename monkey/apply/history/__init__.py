"""History: where specs stand to what was applied before them, and the entries of a sweep's log, one by one."""
