"""Notices to people: claimed by one agent, sent by webhook."""
