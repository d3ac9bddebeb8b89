"""The cache that an agent's jobs share: entries by content, built once, evicted when disk is short."""
