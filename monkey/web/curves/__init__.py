"""Curves of metrics: read from files and shipments, and reduced to the points that a picture shows."""
