"""Machines of AWS: an auto scaling group for each fleet, and the least that it needs around it."""
