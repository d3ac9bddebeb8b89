"""The page of `monkey web` in a real Chromium."""
