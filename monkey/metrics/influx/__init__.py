"""InfluxDB, the copy of metrics for dashboards: its client, its check, and the points that it gets."""
