"""Curves as texts and pictures."""
