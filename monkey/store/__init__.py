"""The store port, what it has in memory, and how a store is opened."""
