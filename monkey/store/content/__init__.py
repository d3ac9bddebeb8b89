"""Files by their content: hashed, compared and copied by worker processes."""
