"""What made the difference: rules that separate failures, the diff of a spec that heeds them, and importance."""
