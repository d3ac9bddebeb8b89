"""YAML as text with positions, so that every mistake is shown where it stands."""
