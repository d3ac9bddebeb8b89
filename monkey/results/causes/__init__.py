"""What made the difference: rules that separate failures, and the diff of a spec that heeds them."""
