"""Where credentials go: to endpoints that a user chose, and to none that the repository alone names."""
