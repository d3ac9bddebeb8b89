"""What Kubernetes gets, written without asking it anything."""
