"""What happens to the single jobs of a sweep: which are new, stale, kept, and in which state."""
