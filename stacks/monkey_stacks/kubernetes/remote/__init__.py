"""What runs in a pod before its agent: sent as source, in the manifest."""
