"""What is said of syncs, which follow branches."""
