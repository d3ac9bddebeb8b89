"""What machine and jobs use: CPU, memory, GPUs, disk; sampled and spooled as points."""
