"""The supervisor of jobs' processes: it starts, freezes and kills them. Nothing but Python."""
