"""Pilots: agents that another scheduler queues, starts and ends; what is common to all such engines."""
