"""`monkey.yaml`: providers, hosts, clouds, store, metrics, notices."""
