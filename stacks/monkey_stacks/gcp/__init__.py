"""Machines of Google's: a managed instance group for each fleet, and the least that it needs around it."""
