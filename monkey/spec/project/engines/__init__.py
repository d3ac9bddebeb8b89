"""Providers of monkey.yaml whose machines another scheduler lends: what they may say of their pilots."""
