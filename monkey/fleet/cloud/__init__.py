"""A machine of a cloud, asked from within: who it is, what it may read, and how it goes. Nothing but Python."""
