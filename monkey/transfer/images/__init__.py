"""Container images: which one a tag names, by the API of its registry."""
