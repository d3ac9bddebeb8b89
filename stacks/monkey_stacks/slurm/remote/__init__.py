"""What runs on the login node: sent as source with each operation, or called here where this machine is one."""
