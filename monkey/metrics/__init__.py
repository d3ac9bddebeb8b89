"""Metrics from `monkey.log` to InfluxDB: metric log, spool, exporter."""
